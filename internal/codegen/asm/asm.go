// Package asm writes machine code for x86-64 and arm64 while the program runs, and calls it.
//
// An [Encoder] turns instructions into bytes, [Load] makes these executable, and [Call] runs
// them. What the instructions compute is up to the packages above: jit compiles loops over
// lanes, and simd has a library of kernels. The encoders and the tables of instructions are
// those of the processor that the program is built for: encode_GOARCH.go and opcodes_GOARCH.go.
// Start reading at asm.go.
package asm

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Code is functions in executable memory, which is freed once the Code is unreachable.
type Code struct {
	bytes   []byte
	entries []int
}

// Load copies functions, each as [Encoder.Finish] returns it, to executable memory. It fails
// where the system gives none.
func Load(functions ...[]byte) (*Code, error) {
	c := &Code{}
	var all []byte
	for _, f := range functions {
		c.entries = append(c.entries, len(all))
		all = append(all, f...)
	}
	var err error
	if c.bytes, err = mapCode(all); err != nil {
		return nil, fmt.Errorf("memory for %d bytes of code: %w", len(all), err)
	}
	runtime.AddCleanup(c, func(b []byte) { _ = unmapCode(b) }, c.bytes)
	return c, nil
}

// Entry returns the address of a function by its number.
func (c *Code) Entry(function int) unsafe.Pointer {
	return unsafe.Pointer(&c.bytes[c.entries[function]])
}

// Available reports whether there is an encoder for the processor and the system permits
// executing generated code.
func Available() bool { return hasEncoder && mayExecute() }

var mayExecute = sync.OnceValue(func() bool {
	_, err := Load([]byte{0xc3})
	return err == nil
})

// Label is a place in the code that jumps lead to, before or after [Encoder.Bind] sets it.
type Label struct {
	bound  bool
	at     int
	places []int // of jumps before the label is bound
}

// constants are the constants that code loads, which follow it.
type constants struct {
	list  []uint64
	where map[uint64][]int // positions in the code of what refers to each
}

// add records that the code at a position refers to a constant.
func (c *constants) add(bits uint64, at int) {
	if c.where == nil {
		c.where = map[uint64][]int{}
	}
	if _, ok := c.where[bits]; !ok {
		c.list = append(c.list, bits)
	}
	c.where[bits] = append(c.where[bits], at)
}
