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
		name, bytes, operations := describe(s, names[s])
		sum := joined[name]
		if sum == nil {
			sum = &native.Timing{Name: name}
			joined[name] = sum
		}
		sum.Time += t.Time
		sum.Launches += t.Launches
		sum.Bytes += bytes * int64(t.Launches)
		sum.Operations += operations * float64(t.Launches)
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

// describe returns the name of a step of a group, the size of its buffers in bytes, all of each even
// if a run reads a part (but the region that is split into parts of complex numbers or joined), and the
// multiplications and additions of a product.
func describe(s step, group string) (name string, bytes int64, operations float64) {
	size := func(buffers ...*buffer) {
		for _, b := range buffers {
			if b != nil {
				bytes += int64(b.bytes())
			}
		}
	}
	name = group
	switch s := s.(type) {
	case *nestStep:
		name = s.n.name
		size(s.n.buffers()...)
	case *piecesStep:
		name = s.nests[0].n.name
		for _, x := range s.nests {
			size(x.n.buffers()...)
		}
	case *productStep:
		name = group + " product"
		size(s.a.buf, s.b.buf, s.c)
		operations = 2 * float64(s.count) * float64(s.m) * float64(s.n) * float64(s.k)
		if s.pairs {
			operations *= 2
		}
	case *stencilStep:
		name = group + " stencil"
		size(s.a.buf, s.b.buf, s.c)
		operations = 2 * float64(s.count) * float64(s.m) * float64(s.k)
	case *transposeStep:
		name = group + " transpose"
		size(s.from, s.to)
	case *copyStep:
		name = group + " copy"
		size(s.from, s.to)
	case *padStep:
		name = group + " pad"
		size(s.from, s.to)
	case *scatterStep:
		size(s.row, s.update, s.out)
	case *sortStep:
		size(s.keys, s.order)
	case *routineStep[float32]:
		size(slices.Concat(s.in, s.out)...)
	case *routineStep[float64]:
		size(slices.Concat(s.in, s.out)...)
	case *partStep:
		name = group + " parts"
		size(s.to)
		bytes *= 3 // it reads pairs
	case *pairStep:
		name = group + " pairs"
		size(s.parts[0], s.parts[1])
		bytes *= 2
	case *fourierStep[float32]:
		size(slices.Concat(s.in, s.out)...)
	case *fourierStep[float64]:
		size(slices.Concat(s.in, s.out)...)
	case *lanesFourier[float32]:
		size(slices.Concat(s.in, s.out)...)
	case *lanesFourier[float64]:
		size(slices.Concat(s.in, s.out)...)
	case *referenceStep:
		size(slices.Concat(s.in, s.out)...)
	case *packedStep:
		size(s.x, s.w, s.out)
		operations = s.operations()
	case *integerStep:
		size(s.x, s.w, s.out)
		operations = s.operations()
	case *unpackStep:
		size(s.x, s.w, s.out)
		operations = s.operations()
	case *groupedStep: // the matrices of all groups, as those of the rows are known by a run alone
		size(s.from, s.groups, s.unpacked.w, s.to)
		operations = s.unpacked.operations()
	case *roundStep:
		size(s.from, s.to)
	case *cachedStep: // the whole cache, as past is known by a run alone
		size(s.q, s.k, s.v, s.past, s.row, s.out, s.parts, s.work)
	case *exchangeStep:
		size(s.in, s.out)
	case *indexStep:
		size(s.out)
	case *lineScan:
		size(s.from, s.to)
	}
	return name, bytes, operations
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
