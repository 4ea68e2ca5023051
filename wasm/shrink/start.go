package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Format of the table from addresses to functions, from Go's runtime/symtab.go: a bucket for each
// 4,096 addresses holds the number of a function and 16 offsets to it. On WebAssembly a function
// has 65,536 addresses, so 16 consecutive buckets are equal.
const (
	bucketAddresses    = 4096
	bucketSize         = 20
	bucketsPerFunction = 1 << pcBits / bucketAddresses

	// Offsets in the runtime's moduledata: findfunctab, minpc, maxpc.
	moduleBuckets, moduleMinPC, moduleMaxPC = 152, 160, 168
)

// moduleLayout holds the offsets in the runtime's moduledata that differ between releases of Go:
// gofunc, the start of funcdata, and epclntab, the end of the tables.
type moduleLayout struct{ data, end int }

// layouts lists the releases of Go whose modules can be shrunk.
var layouts = map[string]moduleLayout{
	"go1.26": {data: 320, end: 328},
	"go1.27": {data: 344, end: 352},
}

// layoutOf returns the layout of a release, as named by runtime.Version.
func layoutOf(version string) (moduleLayout, error) {
	for release, layout := range layouts {
		if version == release || strings.HasPrefix(version, release+".") {
			return layout, nil
		}
	}
	return moduleLayout{}, fmt.Errorf("unknown tables of %s: have those of %s: build with SHRINK=0", version, strings.Join(slices.Sorted(maps.Keys(layouts)), " and "))
}

// computed describes the tables that the module computes at start instead of storing them.
type computed struct {
	buckets, bucketCount uint64
	index, functions     uint64 // functions is the length of the index without its last record
}

// omitComputed removes from memory what the start function writes: all buckets, and the record fields
// that repeat the index. Each word of the index becomes its difference from the previous word, so
// that equal differences remain.
func (t *table) omitComputed(memory []byte) (computed, error) {
	base := uint64(len(memory) - len(t.memory))
	c := computed{
		buckets: t.module(moduleBuckets), bucketCount: (t.module(moduleMaxPC) - t.module(moduleMinPC) + bucketAddresses - 1) / bucketAddresses,
		index: base + t.funcs, functions: t.functions,
	}
	size := uint64(len(memory))
	if c.bucketCount > size/bucketSize || c.buckets > size-bucketSize*c.bucketCount {
		return computed{}, errors.New("the table of buckets is damaged")
	}
	if err := clearBuckets(memory[c.buckets:][:bucketSize*c.bucketCount]); err != nil {
		return computed{}, err
	}
	return c, t.clearIndex()
}

func clearBuckets(buckets []byte) error {
	for at := 0; at < len(buckets); at += bucketSize {
		want := [bucketSize]byte{}
		binary.LittleEndian.PutUint32(want[:], uint32(at/bucketSize/bucketsPerFunction))
		bucket := buckets[at:][:bucketSize]
		if at+bucketSize == len(buckets) {
			bucket = bucket[:4] // the last record is trimmed
		}
		if !bytes.HasPrefix(want[:], bucket) {
			return errors.New("the table of buckets is not regular")
		}
		clear(bucket)
	}
	return nil
}

func (t *table) clearIndex() error {
	funcs := t.memory[t.funcs:]
	for i := range t.functions {
		entry := funcs[8*i:][:4]
		record := uint64(binary.LittleEndian.Uint32(funcs[8*i+4:]))
		if !bytes.Equal(entry, funcs[record:][:4]) {
			return errors.New("the record of a function does not match its address")
		}
		clear(funcs[record:][:4])
	}
	for at := 8 * t.functions; at >= 8; at -= 4 {
		word := binary.LittleEndian.Uint32(funcs[at:])
		binary.LittleEndian.PutUint32(funcs[at:], word-binary.LittleEndian.Uint32(funcs[at-8:]))
	}
	return nil
}

// startFunction returns a function without parameters and results that restores the tables.
func (c computed) startFunction() *function {
	const at = 0 // the local variable
	load := func(offset uint64) instr { return instr{op: opI32Load, a: 2, b: int64(offset)} }
	store := func(offset uint64) instr { return instr{op: opI32Store, a: 2, b: int64(offset)} }
	constant := func(n uint64) instr { return instr{op: opI32Const, a: int64(n)} }
	get, tee := instr{op: opLocalGet, a: at}, instr{op: opLocalTee, a: at}
	loop := func(from uint64, body ...instr) []instr {
		begin := []instr{constant(from), {op: opLocalSet, a: at}, {op: opLoop, a: emptyBlock}}
		return append(append(begin, body...), instr{op: opBrIf}, instr{op: opEnd})
	}
	var body []instr
	body = append(body, loop(bucketSize*c.bucketCount, // from the last bucket to the first
		get, constant(bucketSize), instr{op: opI32Sub}, tee,
		get, constant(bucketSize*bucketsPerFunction), instr{op: opI32DivU}, store(c.buckets),
		get)...)
	body = append(body, loop(8, // prefix sums of the differences in the index
		get,
		get, load(c.index), get, constant(8), instr{op: opI32Sub}, load(c.index), instr{op: opI32Add}, store(c.index),
		get, constant(4), instr{op: opI32Add}, tee, constant(8*c.functions+4), instr{op: opI32LtU})...)
	body = append(body, loop(8*c.functions, // addresses of the functions, from the last record to the first
		get, constant(8), instr{op: opI32Sub}, tee, load(c.index+4), get, load(c.index), store(c.index),
		get)...)
	return &function{locals: []localGroup{{1, valueI32}}, body: append(body, instr{op: opEnd})}
}
