package fusion

import "github.com/rlx-go/rlx/ir"

// Item is a step of a partition.
type Item interface {
	// Reads and Writes are the tensors an item touches.
	Reads() []*Tensor
	Writes() []*Tensor
}

// Loop is a scan: its body runs Count times.
type Loop struct {
	Node  *ir.Node
	Count int
	Body  *Partition
	// Swaps are pairs of places that change roles with every step: what the body
	// reads and writes of one it reads and writes of the other in steps of odd
	// number. So carries need not be copied back.
	Swaps [][2]*Tensor

	reads, writes []*Tensor
}

// Control is an item that runs partitions of its own.
type Control interface {
	Item
	// Partitions are those that it runs.
	Partitions() []*Partition
}

// Branch is a cond: it runs Taken[0] where Pred is true, Taken[1] where it is
// not. Both write the same tensors.
type Branch struct {
	Node  *ir.Node
	Pred  *Tensor
	Taken [2]*Partition

	reads, writes []*Tensor
}

// While is a loop of unknown length: again and again Cond writes Pred, and where
// that is true Body runs; at most Max times, unless that is 0.
type While struct {
	Node       *ir.Node
	Max        int
	Pred       *Tensor
	Cond, Body *Partition

	reads, writes []*Tensor
}

// Partitions returns the body.
func (l *Loop) Partitions() []*Partition { return []*Partition{l.Body} }

// Partitions returns the two branches.
func (x *Branch) Partitions() []*Partition { return x.Taken[:] }

// Partitions returns condition and body.
func (w *While) Partitions() []*Partition { return []*Partition{w.Cond, w.Body} }

// Reads returns the predicate and the tensors that a branch may read.
func (x *Branch) Reads() []*Tensor { return x.reads }

// Writes returns the results.
func (x *Branch) Writes() []*Tensor { return x.writes }

// Reads returns the tensors that condition and body read.
func (w *While) Reads() []*Tensor { return w.reads }

// Writes returns the carries and the predicate.
func (w *While) Writes() []*Tensor { return w.writes }

// Reads returns the tensors of the outer partition that the body reads.
func (l *Loop) Reads() []*Tensor { return l.reads }

// Writes returns the tensors of the outer partition that the body writes: the
// carries, and the stacked results slice by slice.
func (l *Loop) Writes() []*Tensor { return l.writes }
