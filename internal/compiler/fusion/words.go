package fusion

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// isWord reports whether a literal could lie in memory as a word. What is not finite
// could not: languages take such loads for finite.
func isWord(e scalar.Expr) bool {
	if e.Op != scalar.OpConst {
		return false
	}
	switch e.Type {
	case ir.F32:
		x := math.Float64frombits(e.Bits)
		return !math.IsNaN(x) && !math.IsInf(x, 0)
	case ir.I32, ir.U32:
		return true
	}
	return false
}

// HasRoom reports whether the kernels of a group can bind one tensor more.
func (g *Group) HasRoom() bool {
	switch g.Kind {
	case MapKind, ReduceKind, ContractKind:
		return g.partition.bindings(g) < g.partition.options.Tensors
	}
	return false
}

// Words are literals of a group that lie in memory.
type Words struct {
	// Tensor is a constant that holds them.
	Tensor *Tensor

	p     *Partition
	loads map[string]scalar.Expr // by the keys of the literals
}

// Words puts the literals of a group marked in which into memory, as one more of
// its operands. It returns nil where which does.
func (c *Canon) Words(which []bool) *Words {
	if which == nil {
		return nil
	}
	w := &Words{p: c.p, Tensor: c.p.newTensor("words", ir.TypeOf(ir.U32)), loads: map[string]scalar.Expr{}}
	for i, l := range c.Literals {
		if which[i] {
			at := scalar.ConstI(ir.I32, int64(len(w.loads)))
			w.loads[l.Key] = scalar.Bitcast(scalar.LoadAt(w.Tensor.ID, ir.U32, at), l.Expr.Type)
			w.Tensor.Constant = binary.LittleEndian.AppendUint32(w.Tensor.Constant, bitsOf(l.Expr))
		}
	}
	w.Tensor.Dims = []int{len(w.loads)}
	c.Operands = append(c.Operands, w.Tensor)
	return w
}

// Read lets f see loads in the place of the literals. There may be none: w is nil.
func (w *Words) Read(f func()) {
	if w == nil {
		f()
		return
	}
	before := w.p.words
	w.p.words = w.loads
	defer func() { w.p.words = before }()
	f()
}

// bitsOf returns the bits of a literal of 32 bits.
func bitsOf(e scalar.Expr) uint32 {
	if e.Type == ir.F32 {
		return math.Float32bits(float32(math.Float64frombits(e.Bits)))
	}
	return uint32(e.Bits)
}
