package sim

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// column holds the value of a variable or expression for each thread: f for
// floats, i for integers and bools.
type column struct {
	f []float64
	i []int64
}

func newColumn(t dtype.DType, n int) column {
	if t.IsFloat() {
		return column{f: make([]float64, n)}
	}
	return column{i: make([]int64, n)}
}

// fill gives all threads the same value.
func (c column) fill(v scalar.Value) {
	for t := range c.f {
		c.f[t] = v.F
	}
	for t := range c.i {
		c.i[t] = v.I
	}
}

// copyFrom copies the values of the active threads.
func (c column) copyFrom(from column, active []int32) {
	if c.f != nil {
		copyActive(c.f, from.f, active)
	} else {
		copyActive(c.i, from.i, active)
	}
}

func copyActive[T number](to, from []T, active []int32) {
	if first, end := between(active); int(end-first) == len(active) && len(active) > 1 {
		copy(to[first:end], from[first:end])
		return
	}
	for _, t := range active {
		to[t] = from[t]
	}
}

// value returns the value of thread t.
func (c column) value(t int32) scalar.Value {
	if c.f != nil {
		return scalar.Value{F: c.f[t]}
	}
	return scalar.Value{I: c.i[t]}
}

func (c column) set(t int32, v scalar.Value) {
	if c.f != nil {
		c.f[t] = v.F
	} else {
		c.i[t] = v.I
	}
}
