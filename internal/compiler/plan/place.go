package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// placeAll gives every tensor that a launch or the host touches its region.
func (c *entryCompiler) placeAll() error {
	if err := c.placeFixed(c.partition); err != nil {
		return err
	}
	return c.placeTemps(c.partition.Outputs)
}

// placeFixed places the ports and constants of a partition and of the loops in
// it.
func (c *entryCompiler) placeFixed(p *fusion.Partition) error {
	for _, t := range p.Tensors {
		if err := c.placeFixedTensor(t); err != nil {
			return err
		}
	}
	for _, item := range p.Items {
		if x, ok := item.(fusion.Control); ok {
			for _, inner := range x.Partitions() {
				if err := c.placeFixed(inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// placeFixedTensor places ports and constants. Persistent ones lie where an earlier
// entry has put them.
func (c *entryCompiler) placeFixedTensor(t *fusion.Tensor) (err error) {
	var r region
	switch {
	case t.Constant != nil:
		if r, err = c.constants.place(t); err == nil {
			c.plan.Constants = append(c.plan.Constants, Constant{r.buffer, r.offset, deviceBytes(t)})
		}
	case t.Port == nil:
		return nil
	case t.Port.Kind == ir.InputPort:
		r, err = c.inputs.place(t)
	default:
		known, ok := c.persistent[t.Name]
		if r = known; !ok {
			r, err = c.states.place(t)
			c.persistent[t.Name] = r
		}
	}
	c.regions[t] = r
	return err
}

// deviceBytes returns a constant as a device stores it, padded to words.
func deviceBytes(t *fusion.Tensor) []byte {
	data := loop.DeviceBytes(t.DType, t.Constant)
	return append(slices.Clone(data), make([]byte, align(len(data), WordBytes)-len(data))...)
}

// liveRange is the span of launches between which a tensor must be kept.
type liveRange struct {
	t        *fusion.Tensor
	from, to int
	avoid    []*fusion.Tensor // what the kernel that writes it first reads
	next     int              // the earliest launch from which it or a tensor placed later lives
}

// placeTemps places everything else, in order of first use. The given outputs live to
// the end. Inside a loop a value lives from the first to the last iteration if it
// belongs to a partition further out.
func (c *entryCompiler) placeTemps(outputs []*fusion.Tensor) error {
	c.temps.reset()
	lives := c.liveRanges(outputs)
	for _, l := range lives {
		var avoid []int
		for _, t := range l.avoid {
			if r, ok := c.regions[t]; ok {
				avoid = append(avoid, r.buffer)
			}
		}
		r, err := c.temps.place(l, avoid)
		if err != nil {
			return err
		}
		c.regions[l.t] = r
	}
	return nil
}

func (c *entryCompiler) liveRanges(outputs []*fusion.Tensor) []*liveRange {
	found := map[*fusion.Tensor]*liveRange{}
	var order []*liveRange
	for i, l := range c.launches {
		for _, t := range l.Args {
			if t == nil || t.Constant != nil || t.Port != nil {
				continue
			}
			from, to := c.useRange(i, t)
			x := found[t]
			if x == nil {
				x = &liveRange{t: t, from: from, to: to, avoid: l.Args}
				found[t] = x
				order = append(order, x)
			}
			x.from, x.to = min(x.from, from), max(x.to, to)
		}
	}
	for _, t := range outputs {
		if t == nil || t.Port != nil || t.Constant != nil {
			continue
		}
		if found[t] == nil { // nothing to compute: an empty tensor
			found[t] = &liveRange{t: t}
			order = append(order, found[t])
		}
		found[t].to = len(c.launches)
	}
	next := len(c.launches)
	for _, x := range slices.Backward(order) {
		next = min(next, x.from)
		x.next = next
	}
	return order
}

// useRange widens the use of a tensor by launch i to the loops around the launch
// that the tensor was not made in.
func (c *entryCompiler) useRange(i int, t *fusion.Tensor) (from, to int) {
	from, to = i, i
	for depth, r := range c.launches[i].loops {
		if slices.ContainsFunc(r.partitions, func(p *fusion.Partition) bool { return madeInside(p, t) }) {
			continue
		}
		for from > 0 && c.inLoop(c.launches[from-1], depth, r) {
			from--
		}
		for to+1 < len(c.launches) && c.inLoop(c.launches[to+1], depth, r) {
			to++
		}
	}
	return from, to
}

func (c *entryCompiler) inLoop(l placedLaunch, depth int, r *enclosingLoop) bool {
	return depth < len(l.loops) && l.loops[depth] == r
}

// madeInside reports whether a tensor belongs to a partition or to one that it runs.
func madeInside(p *fusion.Partition, t *fusion.Tensor) bool {
	if slices.Contains(p.Tensors, t) {
		return true
	}
	for _, item := range p.Items {
		if x, ok := item.(fusion.Control); ok {
			for _, inner := range x.Partitions() {
				if madeInside(inner, t) {
					return true
				}
			}
		}
	}
	return false
}
