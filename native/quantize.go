package native

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Quantize rounds x to the packed type q8_0 or q4_0, in the block format of GGUF files:
// 32 consecutive elements share an f16 scale s. In q8_0 an element is s·q with q from
// -127 to 127 and s = max|x|/127; in q4_0 it is s·(q−8) with q from 0 to 15 and s the
// element of largest magnitude divided by −8. The result is a u8 tensor whose rows are
// the blocks of the rows of x, as ops.Dequantize and ops.QuantizedMatMul take it. The
// last dimension must be a multiple of 32; without dims, x is one row. The error is of
// kind [ir.ErrShape] or [ir.ErrDType].
func Quantize(d ir.DType, x []float32, dims ...int) (Tensor, error) {
	if dims == nil {
		dims = []int{len(x)}
	}
	if err := checkBlocks(d, dims); err != nil {
		return Tensor{}, err
	}
	if n, ok := count(dims); !ok || n != len(x) {
		return Tensor{}, ir.Shapef("%d numbers given for %s", len(x), typeText(d, dims))
	}
	elems, size := d.Block()
	last := len(dims) - 1
	t := Zeros(ir.U8, append(slices.Clone(dims[:last]), dims[last]/elems*size)...)
	for i := range len(x) / elems {
		block, to := x[i*elems:][:elems], t.Data[i*size:][:size]
		if d == dtype.Q8_0 {
			packBytes(to, block)
		} else {
			packHalves(to, block)
		}
	}
	return t, nil
}

func packBytes(to []byte, x []float32) {
	scale := math.Abs(float64(largest(x))) / 127
	binary.LittleEndian.PutUint16(to, uint16(ir.F16.FloatBits(scale)))
	for i, v := range x {
		to[2+i] = byte(int8(math.Round(quotient(v, scale))))
	}
}

func packHalves(to []byte, x []float32) {
	scale := float64(largest(x)) / -8
	binary.LittleEndian.PutUint16(to, uint16(ir.F16.FloatBits(scale)))
	quant := func(v float32) byte { return byte(min(math.Floor(quotient(v, scale)+8.5), 15)) }
	for i := range len(x) / 2 {
		to[2+i] = quant(x[i]) | quant(x[i+len(x)/2])<<4
	}
}

// quotient returns x/scale, or 0 if scale is 0.
func quotient(x float32, scale float64) float64 {
	if scale == 0 {
		return 0
	}
	return float64(x) / scale
}

// largest returns the element of largest magnitude.
func largest(x []float32) float32 {
	var out float32
	for _, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(out)) {
			out = v
		}
	}
	return out
}

func checkBlocks(d ir.DType, dims []int) error {
	if d != dtype.Q8_0 && d != dtype.Q4_0 {
		return ir.DTypef("the element type is %s; it must be q8_0 or q4_0", d)
	}
	if elems, _ := d.Block(); len(dims) == 0 || dims[len(dims)-1]%elems != 0 {
		return ir.Shapef("%s: the last axis must be a multiple of the block size %d", typeText(d, dims), elems)
	}
	return nil
}
