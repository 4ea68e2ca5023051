//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// recorder asks a stream for the steps of an entry: for a run, or for a graph that is
// captured, in which conditions are nodes.
type recorder struct {
	*entry
	stream   *driver.Stream
	captures bool
	depth    int // of conditions around the steps, each of which is captured by a stream of its own
	// after is told of each step that was asked for; nil where nobody wants to know.
	after func(plan.Step) error
}

// record asks for all steps. Each run begins with a clear status word: one that failed
// does not hold up the next.
func (r *recorder) record() error {
	if r.checks {
		st := r.p.plan.Status
		if err := r.stream.Clear(r.p.at(st.Buffer, st.Offset), plan.StatusBytes); err != nil {
			return err
		}
	}
	if r.captures && r.p.device.Branches() && orders(r.spec.Steps) {
		return r.ordered(r.spec.Steps)
	}
	return r.steps(r.spec.Steps, nil)
}

// steps asks for some steps, those under one condition together; counters are the
// counts of the repeats around them, outermost first.
func (r *recorder) steps(steps []plan.Step, counters []int) error {
	for len(steps) > 0 {
		n, cell := 1, conditionOf(steps[:1])
		for cell != nil && n < len(steps) && conditionOf(steps[:n+1]) != nil {
			n++
		}
		ask := func(r *recorder) error { return r.plain(steps[:n], counters) }
		var err error
		if cell != nil {
			err = r.when(cell, ask)
		} else {
			err = ask(r)
		}
		if err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

// conditionOf returns the cell that tells whether some steps run, all of them or none;
// nil where there is no such cell.
func conditionOf(steps []plan.Step) *plan.Cell {
	var cell *plan.Cell
	for _, s := range steps {
		var own *plan.Cell
		switch s := s.(type) {
		case *plan.Dispatch:
			own = s.Grid
		case *plan.Repeat:
			own = conditionOf(slices.Concat(s.Steps, s.Odd))
		}
		if own == nil || cell != nil && *own != *cell {
			return nil
		}
		cell = own
	}
	return cell
}

// branches reports whether some steps run by what is in memory then.
func branches(steps []plan.Step) bool {
	return slices.ContainsFunc(steps, func(s plan.Step) bool {
		switch s := s.(type) {
		case *plan.Dispatch:
			return s.Grid != nil
		case *plan.Repeat:
			return branches(s.Steps) || branches(s.Odd)
		case *plan.While:
			return true
		}
		return false
	})
}

// when asks for steps that run where a word is not 0.
func (r *recorder) when(cell *plan.Cell, ask func(r *recorder) error) error {
	if r.captures {
		return r.conditional(cell, false, ask)
	}
	going, err := r.look(cell)
	if err != nil || !going {
		return err
	}
	return ask(r)
}

// while asks for rounds of steps, until a word is 0 after one.
func (r *recorder) while(s *plan.While, counters []int) error {
	ask := func(r *recorder) error { return r.steps(s.Steps, append(slices.Clone(counters), 0)) }
	if r.captures {
		return r.conditional(&s.Going, true, ask)
	}
	for going := true; going; {
		err := ask(r)
		if err == nil {
			going, err = r.look(&s.Going)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// conditional adds a node for steps under a condition.
func (r *recorder) conditional(cell *plan.Cell, loop bool, ask func(r *recorder) error) error {
	inner := recorder{entry: r.entry, captures: true, depth: r.depth + 1}
	var err error
	if inner.stream, err = r.p.inner(r.depth); err != nil {
		return err
	}
	word := r.p.at(cell.Buffer, cell.Offset)
	return r.stream.Conditional(inner.stream, *r.p.condition, word, loop, func() error { return ask(&inner) })
}

// look waits for what was asked for, and reports whether a word is not 0.
func (r *recorder) look(cell *plan.Cell) (bool, error) {
	word := make([]byte, plan.WordBytes)
	if err := r.stream.Read(word, r.p.at(cell.Buffer, cell.Offset)); err != nil {
		return false, err
	}
	err := r.stream.Synchronize()
	return binary.LittleEndian.Uint32(word) != 0, err
}

// plain asks for steps whose own conditions hold.
func (r *recorder) plain(steps []plan.Step, counters []int) error {
	for _, step := range steps {
		var err error
		switch s := step.(type) {
		case *plan.Dispatch:
			err = r.launch(s, counters)
		case *plan.Call:
			err = r.p.call(r.stream, s)
		case *plan.Copy:
			err = r.stream.Copy(r.p.at(s.Dst, s.DstOffset), r.p.at(s.Src, s.SrcOffset), s.Bytes)
		case *plan.While:
			err = r.while(s, counters)
		case *plan.Repeat:
			err = r.repeat(s, counters)
		}
		if err == nil && r.after != nil {
			err = r.after(step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeat asks for the rounds of a repeat. Where it stands under one condition that is
// known to hold already.
func (r *recorder) repeat(s *plan.Repeat, counters []int) error {
	ask := r.steps
	if conditionOf([]plan.Step{s}) != nil {
		ask = r.plain
	}
	inner := append(slices.Clone(counters), 0)
	for i := range s.Count {
		inner[len(counters)] = i
		if err := ask(s.Round(i), inner); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) launch(d *plan.Dispatch, counters []int) error {
	k := &r.p.plan.Kernels[d.Kernel]
	if r.p.guards != nil {
		return driver.In(k.Name, r.launchGuarded(d, k, counters))
	}
	pointers := make([]driver.Ptr, 0, len(d.Bindings)+1)
	for _, b := range d.Bindings {
		pointers = append(pointers, r.p.at(b.Buffer, b.Offset))
	}
	return driver.In(k.Name, r.start(d, k, pointers, counters))
}

// start launches a kernel with its arrays at some addresses.
func (r *recorder) start(d *plan.Dispatch, k *plan.Kernel, pointers []driver.Ptr, counters []int) error {
	if k.ScalarBytes > 0 {
		pointers = append(pointers, r.scalars)
	}
	maps, err := r.p.device.mapsOf(k, pointers)
	if err != nil {
		return err
	}
	err = r.stream.Launch(r.p.functions[d.Kernel], d.Groups, k.Workgroup, pointers, counters[:k.Counters], maps...)
	if r.p.debug && err == nil {
		err = r.stream.Synchronize()
	}
	return err
}

// inner returns the stream that captures what stands under so many conditions and one
// more.
func (p *program) inner(depth int) (*driver.Stream, error) {
	if depth == len(p.captures) {
		s, err := p.device.NewStream()
		if err != nil {
			return nil, err
		}
		p.captures = append(p.captures, s)
	}
	return p.captures[depth], nil
}

// loadHelpers loads the kernels that graphs need besides those of the plan.
func (p *program) loadHelpers() (err error) {
	if p.debug {
		return nil // there are no graphs
	}
	branch := slices.ContainsFunc(p.plan.Entries, func(e plan.Entry) bool { return branches(e.Steps) })
	if branch && p.device.Branches() {
		if err := p.loadCondition(); err != nil {
			return err
		}
	}
	if len(p.plan.Routines) > 0 && p.device.EditsGraphs() {
		p.fill, err = p.helper(driver.FillName, driver.FillSource, p.device.Compiler.Code)
	}
	return err
}

// loadCondition loads the kernel that sets the conditions of graphs. The function that it
// calls is the driver's, and NVRTC 12.0 to 12.2 do not know it: they make PTX of it, which
// the driver may take. Where neither is taken there is no such kernel, and the host decides
// what runs.
func (p *program) loadCondition() error {
	if p.device.hostBranches.Load() {
		return nil
	}
	code := p.device.Compiler.Code
	for _, ptx := range slices.Compact([]bool{code.PTX, true}) {
		code.PTX = ptx
		f, err := p.helper(driver.ConditionName, driver.ConditionSource, code)
		if err == nil {
			p.condition = f
			return nil
		}
		var e *driver.Error
		if !errors.As(err, &e) || !e.Refused() {
			return err
		}
	}
	p.device.hostBranches.Store(true)
	return nil
}

// helper loads a kernel that is not of the plan.
func (p *program) helper(name, source string, as driver.Code) (*driver.Function, error) {
	k := plan.Kernel{Name: name, Source: source}
	code, err := imageAs(p.device, cubin.Open(), &k, as)
	if err != nil {
		return nil, err
	}
	m, err := p.device.LoadModule(code)
	if err != nil {
		return nil, driver.In(name, err)
	}
	p.modules = append(p.modules, m)
	f, err := m.Function(name, 0)
	return &f, driver.In(name, err)
}
