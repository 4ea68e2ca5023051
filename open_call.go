package rlx

import (
	"slices"
	"strconv"
	"sync"

	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/native"
)

// call holds the facts that follow from the sizes of the symbols, shared by all calls of these
// sizes.
type call struct {
	sizes  map[string]int
	bound  map[string]int // sizes to compile for
	exact  bool           // compile for the true sizes, without padding
	inputs sync.Map       // of Tensor, the true sizes by the names of inputs
	crops  []padded.Crop
}

// maxCalls bounds the number of calls that an entry caches.
const maxCalls = 1024

// calls are the calls of an entry by their sizes.
type calls struct {
	mu    sync.Mutex
	known map[string]*call
}

// callOf binds the symbols to the shapes of inputs that fit the slots.
func (e *openEntry) callOf(in Inputs) (*call, error) {
	var memory [64]byte
	key := memory[:0]
	for _, name := range e.measured {
		for _, n := range in[name].Dims {
			key = append(strconv.AppendInt(key, int64(n), 10), ' ')
		}
	}
	e.calls.mu.Lock()
	c := e.calls.known[string(key)]
	e.calls.mu.Unlock()
	if c != nil {
		return c, nil
	}
	sizes, err := e.bind(in)
	if err != nil {
		return nil, err
	}
	if c, err = e.newCall(sizes); err != nil {
		return nil, err
	}
	e.calls.mu.Lock()
	defer e.calls.mu.Unlock()
	if len(e.calls.known) >= maxCalls || e.calls.known == nil {
		e.calls.known = map[string]*call{}
	}
	e.calls.known[string(key)] = c
	return c, nil
}

// newCall returns the call for sizes of the symbols.
func (e *openEntry) newCall(sizes map[string]int) (*call, error) {
	bound, err := e.buckets(sizes)
	if err != nil {
		return nil, err
	}
	c := &call{sizes: sizes, bound: bound}
	if e.file == nil && (e.analysis == nil || hasZero(sizes) || e.Check(sizes, bound) != nil) {
		c.exact = true
		return c, nil
	}
	c.crops, err = e.Crops(sizes, bound)
	return c, err
}

// input returns the true size that an input holds.
func (c *call) input(name string) (Tensor, error) {
	if x, known := c.inputs.Load(name); known {
		return x.(Tensor), nil
	}
	d, _ := padded.SizeOf(name)
	n, err := d.Bind(c.sizes)
	if err != nil {
		return Tensor{}, err
	}
	x := native.Int32(int32(n))
	c.inputs.Store(name, x)
	return x, nil
}

// crop returns the true elements of outputs.
func (c *call) crop(out map[string]Tensor) map[string]Tensor {
	for _, crop := range c.crops {
		x, given := out[crop.Name]
		if !given || slices.Equal(crop.Box, crop.Full) {
			continue
		}
		y := native.Zeros(x.DType, crop.Dims...)
		copyBox(y.Data, x.Data, crop.Box, crop.Box, crop.Full, x.DType.Size())
		out[crop.Name] = y
	}
	return out
}
