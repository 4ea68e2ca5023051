package routine

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Product is a batched matrix product, result[i] = left[i]·right[i] for each i below Batch:
// left[i] is M×K, right[i] K×N and result[i] M×N. Sums are in f32.
//
// Its arrays are left, right, a workspace whose contents are undefined before and after, the
// result, and then those of Bias and Adds.
type Product struct {
	// Operand is the element type of the factors: f32, f16 or bf16. Result is that of the
	// result: f32, or Operand.
	Operand, Result dtype.DType
	// TF32 allows rounding f32 factors to 10 bits of fraction.
	TF32           bool
	Batch, M, N, K int
	// Left, Right and Out are the layouts of the matrices. The result is not transposed.
	Left, Right, Out Layout
	// Workspace is the size of the workspace in bytes.
	Workspace int
	// Bias adds a vector of N elements to each row of a product, and Adds a matrix with the
	// layout Added; both are arrays of the result's type.
	Bias, Adds bool
	Added      Layout
}

// Layout gives the strides of a batch of matrices: element (r, c) of matrix i is at
// i·Step + r·Row + c, or if Transposed is set at i·Step + c·Row + r.
// With a step of 0 all products share one matrix.
type Layout struct {
	Transposed bool
	Row, Step  int
}

// at returns the offset of an element.
func (l Layout) at(i, r, c int) int {
	if l.Transposed {
		r, c = c, r
	}
	return i*l.Step + r*l.Row + c
}

// Name returns "product".
func (p Product) Name() string { return "product" }

// words returns the number fields of a product, in encoding order.
func (p *Product) words() []*int {
	return []*int{
		&p.Batch, &p.M, &p.N, &p.K, &p.Left.Row, &p.Left.Step, &p.Right.Row, &p.Right.Step, &p.Out.Row, &p.Out.Step, &p.Workspace,
		&p.Added.Row, &p.Added.Step,
	}
}

// types are the element types of products, by their encoding.
var types = []dtype.DType{dtype.F32, dtype.F16, dtype.BF16}

// flags returns the boolean fields of a product, in encoding order.
func (p *Product) flags() []*bool {
	return []*bool{&p.TF32, &p.Left.Transposed, &p.Right.Transposed, &p.Bias, &p.Adds}
}

// Words implements [Routine].
func (p Product) Words() []int {
	var out []int
	for _, d := range []dtype.DType{p.Operand, p.Result} {
		for i, t := range types {
			if t == d {
				out = append(out, i)
			}
		}
	}
	for _, f := range p.flags() {
		out = append(out, map[bool]int{true: 1}[*f])
	}
	for _, w := range p.words() {
		out = append(out, *w)
	}
	return out
}

// typeWords and flagWords are the numbers of words for types and flags, which come first.
const typeWords, flagWords = 2, 5

func productOf(words []int) (Routine, error) {
	var p Product
	numbers := p.words()
	if len(words) != typeWords+flagWords+len(numbers) {
		return nil, format.Errorf("the product has %d words; it must have %d", len(words), typeWords+flagWords+len(numbers))
	}
	for i, d := range []*dtype.DType{&p.Operand, &p.Result} {
		if words[i] < 0 || words[i] >= len(types) {
			return nil, format.Errorf("word %d of the product is %d; it must be an element type", i, words[i])
		}
		*d = types[words[i]]
	}
	for i, f := range p.flags() {
		word := words[typeWords+i]
		if word != 0 && word != 1 {
			return nil, format.Errorf("word %d of the product is %d; it must be 0 or 1", typeWords+i, word)
		}
		*f = word == 1
	}
	for i, n := range numbers {
		*n = words[typeWords+flagWords+i]
	}
	return p, p.Check()
}

// maxNumber bounds the numbers of a product and the extent of each matrix, so that no size in
// bytes overflows.
const maxNumber = min(math.MaxInt32, math.MaxInt/8)

// Check returns an error for an invalid product: unsupported types, sizes that are not
// positive, matrices that are too large, overlapping rows or overlapping results.
func (p Product) Check() error {
	if p.Operand != dtype.F32 && p.Operand != dtype.F16 && p.Operand != dtype.BF16 || p.Result != dtype.F32 && p.Result != p.Operand {
		return format.Errorf("a product of %s cannot have results of %s", p.Operand, p.Result)
	}
	if p.Out.Transposed || p.TF32 && p.Operand != dtype.F32 {
		return format.Errorf("a product of %s has a transposed result or tf32 without f32", p.Operand)
	}
	for _, n := range p.words() {
		if *n < 0 || *n > maxNumber {
			return format.Errorf("a size or stride is %d; it is out of range", *n)
		}
	}
	if min(p.Batch, p.M, p.N, p.K) < 1 {
		return format.Errorf("%d products of %d×%d and %d×%d; sizes must be positive", p.Batch, p.M, p.K, p.K, p.N)
	}
	matrices := p.matrices()
	for _, m := range append(matrices[:], p.added()...) {
		if m.Row < m.across {
			return format.Errorf("rows of %d elements have the stride %d; it must not be smaller", m.across, m.Row)
		}
		if m.elements(p.Batch) > maxNumber {
			return format.Errorf("a matrix has more than %d elements", maxNumber)
		}
	}
	if !p.Adds && p.Added != (Layout{}) || p.Added.Transposed {
		return format.Errorf("the matrix to add is missing or transposed")
	}
	between := int64(p.Out.Step) >= matrices[2].elements(1) || p.Out.Step >= p.N && int64(p.Out.Row) >= int64(p.Batch)*int64(p.Out.Step)
	if p.Batch > 1 && !between {
		return format.Errorf("results of the batch overlap")
	}
	return nil
}

// matrix is a matrix in memory: down rows of across elements.
type matrix struct {
	Layout
	down, across int
}

// matrices returns the factors and the result.
func (p Product) matrices() [3]matrix {
	lie := func(l Layout, rows, columns int) matrix {
		if l.Transposed {
			rows, columns = columns, rows
		}
		return matrix{l, rows, columns}
	}
	return [3]matrix{lie(p.Left, p.M, p.K), lie(p.Right, p.K, p.N), lie(p.Out, p.M, p.N)}
}

// added returns the matrices to add: one or none.
func (p Product) added() []matrix {
	if !p.Adds {
		return nil
	}
	return []matrix{{p.Added, p.M, p.N}}
}

// elements returns the number of elements that a batch of matrices spans, with gaps.
func (m matrix) elements(batch int) int64 {
	return int64(batch-1)*int64(m.Step) + int64(m.down-1)*int64(m.Row) + int64(m.across)
}

// Arrays implements [Routine].
func (p Product) Arrays() []Array {
	bytes := func(elements int64, d dtype.DType) int { return (int(elements)*d.Size() + 3) &^ 3 }
	of := func(i int, d dtype.DType) int { return bytes(p.matrices()[i].elements(p.Batch), d) }
	out := []Array{{of(0, p.Operand), false}, {of(1, p.Operand), false}, {p.Workspace, true}, {of(2, p.Result), true}}
	if p.Bias {
		out = append(out, Array{bytes(int64(p.N), p.Result), false})
	}
	for _, m := range p.added() {
		out = append(out, Array{bytes(m.elements(p.Batch), p.Result), false})
	}
	return out
}

// Reference implements [Routine]. It sums in f64 and rounds once.
func (p Product) Reference(memory [][]byte) {
	left, right, out := memory[0], memory[1], memory[3]
	for i := range p.Batch {
		for r := range p.M {
			for c := range p.N {
				sum := 0.0
				for k := range p.K {
					sum += load(p.Operand, left, p.Left.at(i, r, k)) * load(p.Operand, right, p.Right.at(i, k, c))
				}
				store(p.Result, out, p.Out.at(i, r, c), p.finished(sum, memory[4:], i, r, c))
			}
		}
	}
}

// finished applies the epilogue to an element of a product; rest are the arrays after the
// result.
func (p Product) finished(x float64, rest [][]byte, i, r, c int) float64 {
	if p.Bias {
		x += load(p.Result, rest[0], c)
		rest = rest[1:]
	}
	if p.Adds {
		x += load(p.Result, rest[0], p.Added.at(i, r, c))
	}
	return x
}

func load(d dtype.DType, memory []byte, i int) float64 {
	at := memory[i*d.Size():]
	if d.Size() == 2 {
		return d.FloatFromBits(uint64(binary.LittleEndian.Uint16(at)))
	}
	return d.FloatFromBits(uint64(binary.LittleEndian.Uint32(at)))
}

func store(d dtype.DType, memory []byte, i int, x float64) {
	at := memory[i*d.Size():]
	if d.Size() == 2 {
		binary.LittleEndian.PutUint16(at, uint16(d.FloatBits(x)))
		return
	}
	binary.LittleEndian.PutUint32(at, uint32(d.FloatBits(x)))
}
