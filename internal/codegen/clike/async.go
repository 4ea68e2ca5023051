package clike

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Async describes the asynchronous copies and MMA of a language.
type Async struct {
	// Copy returns a copy of bytes from one address to another. It writes zeros if valid,
	// unless it is "", is false.
	Copy func(w *Writer, bytes int, to, from, valid string) string
	// Commit and Fence are a CopyCommit and a ProxyFence, Wait a CopyWait. Fence is ""
	// if MMA sees the writes of threads without it.
	Commit, Fence string
	Wait          func(pending int) string
	// Mma returns the lines of a group of MMA instructions, MmaWait the wait for it;
	// nil if they are synchronous.
	Mma     func(w *Writer, a loop.MmaShape, terms []MmaTerm) []string
	MmaWait func(pending int, list []Variable) string
	// Pack returns the statement of a [loop.Pack].
	Pack func(w *Writer, t dtype.DType, to, low, high string) string
	// Roles writes warp specialisation; nil if the language has none.
	Roles *Roles
}

// Variable is an operand or accumulator of MMA in registers.
type Variable struct {
	Name string
	Type dtype.DType
}

// MmaTerm is a [loop.MmaTerm] with the names of its variables, and the start of its
// operands: an array and an offset in pieces of 16 bytes.
type MmaTerm struct {
	loop.MmaTerm
	ArrayA, PieceA string
	ArrayB, PieceB string
}

// async writes a statement of asynchronous copies, MMA or roles.
func (w statements) async(s loop.Stmt) {
	d := w.d.Async
	switch s := s.(type) {
	case *loop.CopyAsync:
		w.copyAsync(s)
	case *loop.CopyCommit:
		w.line(d.Commit)
	case *loop.CopyWait:
		w.line(d.Wait(s.Pending))
	case *loop.ProxyFence:
		if d.Fence != "" {
			w.line(d.Fence)
		}
	case *loop.Mma:
		w.mma(s)
	case *loop.MmaWait:
		if d.MmaWait == nil {
			return
		}
		list := make([]Variable, len(s.Names))
		for i, name := range s.Names {
			list[i] = Variable{w.name(name), w.mutable[name]}
		}
		w.line(d.MmaWait(s.Pending, list))
	case *loop.Pack:
		e := w.bind(s.Low, s.High)
		w.line(d.Pack(w.Writer, s.Type, w.name(s.Name), w.expr(e[0]).s, w.expr(e[1]).s))
	default:
		w.role(s)
	}
}

func (w statements) copyAsync(s *loop.CopyAsync) {
	roots := []scalar.Expr{s.ToAt, s.FromAt}
	if s.Valid != nil {
		roots = append(roots, s.Valid)
	}
	e, valid := w.bind(roots...), ""
	if s.Valid != nil {
		valid = w.expr(e[2]).s
	}
	bytes := s.Count * loop.DeviceSize(w.k.Arrays[s.From].DType)
	to := "&" + w.element(s.To, e[0])
	if w.k.Arrays[s.To].Width > 1 {
		to = "&" + w.out.Names[s.To] + "[0].x + " + w.expr(e[0]).s
	}
	w.line(w.d.Async.Copy(w.Writer, bytes, to, "&"+w.element(s.From, e[1]), valid))
}

func (w statements) mma(s *loop.Mma) {
	terms := make([]MmaTerm, len(s.Terms))
	for i, t := range s.Terms {
		t.Sums, t.LeftRegisters = w.variables(t.Sums), w.variables(t.LeftRegisters)
		terms[i].MmaTerm = t
		terms[i].ArrayB, terms[i].PieceB = w.tile(t.B)
		if t.LeftRegisters == nil {
			terms[i].ArrayA, terms[i].PieceA = w.tile(t.A)
		}
	}
	for _, line := range w.d.Async.Mma(w.Writer, s.Shape, terms) {
		w.line(line)
	}
}

// tile returns the start of an operand.
func (w statements) tile(t loop.Tile) (array, piece string) {
	k, d := t.K, w.k.Arrays[t.Array].DType
	if t.Depth > 0 {
		k *= loop.RowElements(d)
	}
	at := scalar.FloorDiv(scalar.Add(t.At, loop.Int(k)), loop.Int(loop.ChunkElements(d)))
	return w.out.Names[t.Array], w.expr(w.bind(w.ranges.Simplify(at))[0]).s
}

// variables returns the printed names of variables, nil for nil.
func (w statements) variables(names []string) []string {
	if names == nil {
		return nil
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = w.name(name)
	}
	return out
}
