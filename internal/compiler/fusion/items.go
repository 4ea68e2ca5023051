package fusion

import "github.com/rlx-go/rlx/ir"

// Item is a step of a partition: a [*Group] or a [Control].
type Item interface {
	// Reads and Writes return the tensors an item accesses.
	Reads() []*Tensor
	Writes() []*Tensor
}

// Loop is a scan: its body runs Count times.
type Loop struct {
	Node  *ir.Node
	Count int
	Body  *Partition
	// Swaps are pairs of buffers that swap roles with every step: in odd steps the
	// body uses one where it uses the other in even steps. This double buffering
	// saves copying carries back.
	Swaps [][2]*Tensor

	reads, writes []*Tensor
}

// Control is an item that runs inner partitions.
type Control interface {
	Item
	// Partitions returns the inner partitions.
	Partitions() []*Partition
}

// Branch is a cond: it runs Taken[0] if Pred is true and Taken[1] otherwise. Both
// write the same tensors.
type Branch struct {
	Node  *ir.Node
	Pred  *Tensor
	Taken [2]*Partition

	reads, writes []*Tensor
}

// While is a loop of unknown length: Cond writes Pred and Body runs while it is true,
// at most Max times unless Max is 0.
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
