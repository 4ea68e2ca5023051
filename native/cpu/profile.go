package cpu

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// profiler is a program that implements [native.Profiler].
type profiler struct {
	*synchronous.Program
	p *program
}

// Profile implements [native.Profiler]. The inputs are the tensors of the entry's last run, and
// zeros before the first one. The steps of loops are timed one by one.
func (x *profiler) Profile(ctx context.Context, name string, runs int) ([]native.Timing, error) {
	var out []native.Timing
	err := x.Do(ctx, name, func(entry int) (err error) {
		out, err = x.p.entries[entry].profile(ctx, runs)
		return err
	})
	return out, err
}

// profile is [profiler.Profile] of an entry.
func (e *entry) profile(ctx context.Context, runs int) ([]native.Timing, error) {
	if runs < 1 {
		return nil, ir.Attrf("a profile of %d runs", runs)
	}
	for _, in := range e.inputs {
		if in.buf == nil {
			continue
		}
		s := &e.slots[in.slot] // the caller may have changed its tensor since
		if err := s.Accept(native.Tensor{DType: s.DType, Dims: s.Dims, Data: in.buf.data[:in.buf.bytes()]}); err != nil {
			return nil, err
		}
	}
	p := &profile{total: map[step]*native.Timing{}}
	e.runner.profile = p
	defer func() { e.runner.profile = nil }()
	for range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.run(); err != nil {
			return nil, err
		}
	}
	return p.timings(e.names, runs), nil
}

// profile accumulates the times of steps.
type profile struct{ total map[step]*native.Timing }

// time runs a step and adds its time. The parts of loops and branches are steps of their own.
func (p *profile) time(r *runner, s step) {
	switch s.(type) {
	case *loopStep, *whileStep, *branchStep:
		s.run(r)
		return
	}
	start := time.Now()
	s.run(r)
	took := time.Since(start)
	t := p.total[s]
	if t == nil {
		t = &native.Timing{}
		p.total[s] = t
	}
	t.Time += took
	t.Launches++
}

// timings sums the steps of each name, longest first.
func (p *profile) timings(names map[step]string, runs int) []native.Timing {
	joined := map[string]*native.Timing{}
	for s, t := range p.total {
		name := nameOf(s, names[s])
		sum := joined[name]
		if sum == nil {
			sum = &native.Timing{Name: name}
			joined[name] = sum
		}
		sum.Time += t.Time
		sum.Launches += t.Launches
		sum.Bytes += bytesOfStep(s) * int64(t.Launches)
		sum.Operations += operationsOf(s) * float64(t.Launches)
	}
	out := make([]native.Timing, 0, len(joined))
	for _, t := range joined {
		out = append(out, native.Timing{
			Name: t.Name, Launches: t.Launches / runs, Time: t.Time / time.Duration(runs),
			Bytes: t.Bytes / int64(runs), Operations: t.Operations / float64(runs),
		})
	}
	slices.SortFunc(out, func(a, b native.Timing) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// nameOf returns the name of a step of a group.
func nameOf(s step, group string) string {
	switch s := s.(type) {
	case *nestStep:
		return s.n.name
	case *piecesStep:
		return s.nests[0].n.name
	case *productStep, *tinyStep:
		return group + " product"
	case *stencilStep:
		return group + " stencil"
	case *transposeStep:
		return group + " transpose"
	case *copyStep:
		return group + " copy"
	case *padStep:
		return group + " pad"
	case *partStep:
		return group + " parts"
	case *pairStep:
		return group + " pairs"
	}
	return group
}

// operationsOf returns the number of multiplications and additions of a product, 0 for other steps.
func operationsOf(s step) float64 {
	switch s := s.(type) {
	case *productStep:
		return s.operations()
	case *tinyStep:
		return s.operations()
	case *stencilStep:
		return 2 * float64(s.count) * float64(s.m) * float64(s.k)
	case *packedStep:
		return s.operations()
	case *integerStep:
		return s.operations()
	case *unpackStep:
		return s.operations()
	case *groupedStep:
		return s.unpacked.operations()
	}
	return 0
}

// operations returns the number of multiplications and additions of a product.
func (x *matrixProduct) operations() float64 {
	n := 2 * float64(x.count) * float64(x.m) * float64(x.n) * float64(x.k)
	if x.pairs {
		n *= 2
	}
	return n
}

func (x *matrixProduct) buffers() []*buffer { return []*buffer{x.a.buf, x.b.buf, x.c} }

// bytesOfStep returns the size of the buffers of a step, all of each even if a run reads a part: the whole cache of
// an attention, and the matrices of all groups of a product. Of a step that splits complex numbers into parts, or joins
// them, it is the size of the region.
func bytesOfStep(s step) (bytes int64) {
	for _, b := range buffersOf(s) {
		if b != nil {
			bytes += int64(b.bytes())
		}
	}
	switch s.(type) {
	case *partStep:
		return 3 * bytes // it reads pairs
	case *pairStep:
		return 2 * bytes
	}
	return bytes
}

// buffersOf returns the buffers of a step.
func buffersOf(s step) (list []*buffer) {
	switch s := s.(type) {
	case *nestStep:
		return s.n.buffers()
	case *piecesStep:
		for _, x := range s.nests {
			list = append(list, x.n.buffers()...)
		}
		return list
	case *productStep:
		return append(s.buffers(), s.rest)
	case *tinyStep:
		return s.buffers()
	case *stencilStep:
		return s.buffers()
	case *transposeStep:
		return []*buffer{s.from, s.to}
	case *copyStep:
		return []*buffer{s.from, s.to}
	case *padStep:
		return []*buffer{s.from, s.to}
	case *roundStep:
		return []*buffer{s.from, s.to}
	case *lineScan:
		return []*buffer{s.from, s.to}
	case *scatterStep:
		return []*buffer{s.row, s.update, s.out}
	case *sortStep:
		return []*buffer{s.keys, s.order}
	case *partStep:
		return []*buffer{s.to}
	case *pairStep:
		return s.parts[:]
	case *packedStep:
		return []*buffer{s.x, s.w, s.out}
	case *integerStep:
		return []*buffer{s.x, s.w, s.out}
	case *unpackStep:
		return []*buffer{s.x, s.w, s.out}
	case *groupedStep:
		return []*buffer{s.from, s.groups, s.unpacked.w, s.to}
	case *cachedStep:
		return []*buffer{s.q, s.k, s.v, s.past, s.row, s.out, s.parts, s.work}
	case *exchangeStep:
		return []*buffer{s.in, s.out}
	case *indexStep:
		return []*buffer{s.out}
	}
	return operandsOf(s)
}

// operandsOf returns the buffers of a step that computes a whole op, by a routine or by its reference
// implementation.
func operandsOf(s step) []*buffer {
	switch s := s.(type) {
	case *routineStep[float32]:
		return slices.Concat(s.in, s.out)
	case *routineStep[float64]:
		return slices.Concat(s.in, s.out)
	case *fourierStep[float32]:
		return slices.Concat(s.in, s.out)
	case *fourierStep[float64]:
		return slices.Concat(s.in, s.out)
	case *lanesFourier[float32]:
		return slices.Concat(s.in, s.out)
	case *lanesFourier[float64]:
		return slices.Concat(s.in, s.out)
	case *referenceStep:
		return slices.Concat(s.in, s.out)
	}
	return nil
}

// buffers returns the distinct buffers that a nest reads and writes.
func (n *nest) buffers() []*buffer {
	var out []*buffer
	n.eachList(func(code *[]instr) {
		for i := range *code {
			for _, b := range (*code)[i].buffers() {
				if !slices.Contains(out, b) {
					out = append(out, b)
				}
			}
		}
	})
	return out
}

// buffers returns the buffers that an instruction reads and writes.
func (in *instr) buffers() []*buffer {
	var out []*buffer
	if in.buf != nil {
		out = append(out, in.buf)
	}
	if in.fused != nil {
		for _, a := range in.fused.arrays {
			if a.access != nil {
				out = append(out, a.access.buf)
			}
		}
	}
	return out
}
