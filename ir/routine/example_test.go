package routine_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// The reference implementation of a product of matrices of one element.
func ExampleProduct() {
	dense := routine.Layout{Row: 1, Step: 1}
	p := routine.Product{Operand: dtype.F32, Result: dtype.F32, Batch: 1, M: 1, N: 1, K: 1, Left: dense, Right: dense, Out: dense}
	number := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)) }
	memory := [][]byte{number(3), number(5), nil, number(0)} // left, right, workspace, result
	p.Reference(memory)
	fmt.Println(p.Name(), math.Float32frombits(binary.LittleEndian.Uint32(memory[3])))
	// Output: product 15
}
