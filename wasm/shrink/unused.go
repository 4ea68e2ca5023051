package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bodies that replace those of functions.
var (
	returns = (&function{body: []instr{ // with the return address off the stack, and not to unwind
		{op: opGlobalGet, a: spGlobal},
		{op: opI32Const, a: 8},
		{op: opI32Add},
		{op: opGlobalSet, a: spGlobal},
		{op: opI32Const},
		{op: opEnd},
	}}).write()
	traps = (&function{body: []instr{{op: opUnreachable}, {op: opEnd}}}).write()
)

// replacement is a body for functions of Go's runtime.
type replacement struct {
	// unless names a function without which the others have nothing to do. The
	// linker leaves it out of a program that does not use it.
	unless string
	with   []byte
	names  []string // one that ends in a star stands for all that begin so
}

var replacements = []replacement{
	// What only reports: it has no results, and what it prints says nothing without
	// names and lines. The message of a panic is printed by others.
	{"", returns, []string{
		"runtime.traceback", "runtime.traceback1", "runtime.tracebackothers", "runtime.tracebacksomeothers",
		"runtime.goroutineheader", "runtime.schedtrace", "runtime.dumpgstatus", "runtime.gcDumpObject",
		"runtime.dumpScanStats", "runtime.printScavTrace",
	}},
	// A check, at each start, of the tables that the linker wrote.
	{"", returns, []string{"runtime.moduledataverify1"}},
	// Before the runtime sees that nobody reads the profile of memory, it may take a sample.
	{"runtime.MemProfile", returns, []string{"runtime.mProf_Malloc"}},
	// Nothing of this runs before tracing was started.
	{"runtime.StartTrace", traps, []string{"runtime.traceLocker.*", "runtime.traceAdvance", "runtime.traceReader"}},
}

// tracing tells whether tracing was started.
const tracing = "runtime.traceLocker.ok"

// replaceRuntime replaces the bodies of functions of Go's runtime, given the
// names of all functions.
func replaceRuntime(bodies [][]byte, names []string) {
	for _, r := range replacements {
		if slices.Contains(names, r.unless) {
			continue
		}
		for number, name := range names {
			if name != tracing && slices.ContainsFunc(r.names, func(pattern string) bool { return matches(name, pattern) }) {
				bodies[number] = r.with
			}
		}
	}
}

func matches(name, pattern string) bool {
	prefix, all := strings.CutSuffix(pattern, "*")
	return name == pattern || all && strings.HasPrefix(name, prefix)
}

// dropUnused replaces the bodies of functions that nothing leads to: no export,
// no address in memory, and neither a call nor an address in the code of those.
// Memory holds addresses whole, in values that are functions and in interfaces,
// or their high part alone, in the tables of types' methods. What only looks like
// one keeps a function that is not needed. The table of functions, whose place is
// given, does not count: it has all of them. Functions keep their numbers, which
// addresses are made of. It returns the numbers of those that were dropped.
func dropUnused(m module, bodies [][]byte, memory []byte, tables place) (dropped []int, err error) {
	imports, size := binary.Uvarint(m.section(importSection)) // all of them functions
	if size <= 0 {
		return nil, errDamaged
	}
	used := make([]bool, len(bodies))
	var open []int
	use := func(number int64) {
		if number >= 0 && number < int64(len(bodies)) && !used[number] {
			used[number] = true
			open = append(open, int(number))
		}
	}
	if err := m.exported(func(number int64) { use(number - int64(imports)) }); err != nil {
		return nil, err
	}
	for at := 0; at+4 <= len(memory); at += 4 {
		word := int64(binary.LittleEndian.Uint32(memory[at:]))
		if word<<(64-pcBits) == 0 {
			word >>= pcBits
		}
		if word >= tableBase && (at < tables.from || at >= tables.to) {
			use(word - tableBase)
		}
	}
	for len(open) > 0 {
		number := open[len(open)-1]
		open = open[:len(open)-1]
		f, err := readFunction(bodies[number])
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", number, err)
		}
		for _, i := range f.body {
			switch i.op {
			case opCall:
				use(i.a - int64(imports))
			case opI32Const, opI64Const:
				use(i.a>>pcBits - tableBase)
			}
		}
	}
	for number := range bodies {
		if !used[number] {
			bodies[number] = traps
			dropped = append(dropped, number)
		}
	}
	return dropped, nil
}

// place is a stretch of memory.
type place struct{ from, to int }

// exported calls use with the number of each exported function.
func (m module) exported(use func(number int64)) error {
	r := &reader{data: m.section(exportSection)}
	for n := r.unsigned(); n > 0 && r.err == nil; n-- {
		r.take(uint64(r.unsigned())) // the name
		if kind, number := r.byte(), r.unsigned(); kind == 0 {
			use(number)
		}
	}
	if r.err != nil {
		return errors.New("the exports are damaged")
	}
	return nil
}
