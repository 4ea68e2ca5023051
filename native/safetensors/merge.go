package safetensors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Merge returns weights by their names in nn, with the adapter in them, as PEFT's merge_and_unload: a model without nn.LoRA then computes
// what that with the adapter did. The weight of a scope becomes weight + lora_A·lora_B·Alpha/Rank, computed in f64 and
// rounded to its type. It is [in, out], or [out, in] if outIn says so of its name, as nn.Storage.OutIn of language models does; nil
// means none. Other tensors are returned as they are, those of the adapter left out: all parameters of a training may be
// both the adapter's and the weights. The error is of kind [ir.ErrName] for a scope without a weight, [ir.ErrShape] for a weight that does not
// fit, [ir.ErrDType] for weights and matrices that are no floats, and those of [WriteAdapter].
func (a Adapter) Merge(weights map[string]native.Tensor, outIn func(name string) bool) (map[string]native.Tensor, error) {
	pairs := map[string]native.Tensor{}
	for name, x := range a.Tensors {
		if _, _, ok := cutEnd(name, adapterEnds); !ok {
			continue
		}
		if len(x.Dims) != 2 {
			return nil, ir.Shapef("tensor %q is %s; it must be a matrix", name, x)
		}
		pairs[name] = x
	}
	rank := a.Rank
	for _, name := range slices.Sorted(maps.Keys(pairs)) { // the first is a lora_A
		rank = cmp.Or(rank, pairs[name].Dims[1])
	}
	if err := checkPairs(pairs, adapterEnds, [2]int{1, 0}, rank); err != nil {
		return nil, err
	}
	out := map[string]native.Tensor{}
	for name, x := range weights {
		if _, _, ok := cutEnd(name, adapterEnds); !ok {
			out[name] = x
		}
	}
	scale := cmp.Or(a.Alpha, float64(rank)) / float64(rank)
	for name, down := range pairs {
		scope, which, _ := cutEnd(name, adapterEnds)
		if which != 0 {
			continue
		}
		to := scope + "/weight"
		weight, known := weights[to]
		if !known {
			return nil, ir.Errorf(ir.ErrName, "adapter: tensor %q has no %q to merge with", name, to)
		}
		left, right := down, pairs[scope+adapterEnds[1]]
		if outIn != nil && outIn(to) { // (a·b)ᵀ = bᵀ·aᵀ
			var err error
			if left, right, err = transposedPair(right, left); err != nil {
				return nil, fmt.Errorf("adapter: %q: %w", scope, err)
			}
		}
		sum, err := plusProduct(weight, left, right, scale)
		if err != nil {
			return nil, fmt.Errorf("adapter: %q: %w", scope, err)
		}
		out[to] = sum
	}
	return out, nil
}

// transposedPair returns two matrices with rows and columns exchanged.
func transposedPair(x, y native.Tensor) (tx, ty native.Tensor, err error) {
	if tx, err = transposed("lora_B", x); err == nil {
		ty, err = transposed("lora_A", y)
	}
	return tx, ty, err
}

// plusProduct returns w + a·b·scale of matrices.
func plusProduct(w, a, b native.Tensor, scale float64) (native.Tensor, error) {
	rank := a.Dims[1]
	if len(w.Dims) != 2 || w.Dims[0] != a.Dims[0] || w.Dims[1] != b.Dims[1] {
		return native.Tensor{}, ir.Shapef("the weight is %s; it must be [%d,%d] for matrices %s and %s", w, a.Dims[0], b.Dims[1], a, b)
	}
	var arrays [3]*ir.Array
	for i, x := range []native.Tensor{w, a, b} {
		if !x.DType.IsFloat() {
			return native.Tensor{}, ir.DTypef("a matrix is %s; it must be of floats", x)
		}
		var err error
		if arrays[i], err = x.Array(); err != nil {
			return native.Tensor{}, err
		}
	}
	n := w.Dims[1]
	sum := make([]float64, w.Len())
	for at := range sum {
		sum[at] = arrays[0].Float(at)
	}
	for i := range w.Dims[0] {
		row := sum[i*n : (i+1)*n]
		for r := range rank {
			x := scale * arrays[1].Float(i*rank+r)
			for o := range row {
				row[o] += x * arrays[2].Float(r*n+o)
			}
		}
	}
	w.Data = ir.Floats(w.DType, sum).Bytes()
	return w, nil
}
