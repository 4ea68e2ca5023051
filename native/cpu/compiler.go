package cpu

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/executor/ranks"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// step is one action of an entry. A run executes the steps in order.
type step interface{ run(r *runner) }

// compiler emits the steps of one entry.
type compiler struct {
	placement
	env    *environment
	pairs  map[int]int // IDs of tensors of bf16 as pairs, by those of the tensors
	steps  []step
	group  string // the name of the group that is compiled
	loops  int
	checks []*ir.Node // of the partition of the entry, by status code
}

// compile compiles all entries of a module. It checks the memory against the budget twice: before
// it copies constants, and once the steps have reserved their memory. Parameters and states in
// shared use the memory of another program.
func compile(ctx context.Context, b backend, m *ir.Module, budget native.Budget, shared map[string]*stored, mesh *collective.Mesh) (*program, error) {
	p := &program{persistent: map[string]*stored{}, shared: shared, mesh: mesh}
	if err := p.acceptShared(m); err != nil {
		return nil, err
	}
	sources := make([]source, len(m.Entries))
	blame := func(e ir.Entry, err error) error { return fmt.Errorf("entry %q of module %q: %w", e.Name, m.Name, err) }
	for i, e := range m.Entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := buildPartition(b, e, mesh)
		if err != nil {
			return nil, blame(e, err)
		}
		sources[i] = source{e, made}
	}
	if err := checkBudget(sources, budget); err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := p.compileEntry(s)
		if err != nil {
			return nil, blame(s.entry, err)
		}
		p.entries = append(p.entries, made)
	}
	p.markParams(m)
	if err := budget.Check(p.memory.parts, p.inputs()); err != nil {
		return nil, err
	}
	p.allocate()
	return p, nil
}

// buildPartition checks that the backend supports an entry's graph, and partitions the lowered
// graph.
func buildPartition(b backend, e ir.Entry, mesh *collective.Mesh) (*fusion.Partition, error) {
	if err := b.supported(e.Graph); err != nil {
		return nil, err
	}
	if err := ranks.Check(e.Graph, mesh); err != nil {
		return nil, err
	}
	g, err := lowerComposites(e.Graph)
	if err != nil {
		return nil, err
	}
	return fusion.Build(g, b.options())
}

func (p *program) compileEntry(s source) (*entry, error) {
	prog := s.partition
	made := &entry{name: s.entry.Name, env: &environment{}, names: map[step]string{}, onlyReads: !writesState(s.entry.Graph) && !ranks.Has(s.entry.Graph)}
	made.runner.env, made.runner.job = made.env, new(job)
	c := &compiler{placement: newPlacement(p, made, prog), env: made.env, pairs: map[int]int{}, checks: prog.Checks}
	c.placePersistent(prog)
	for i, item := range prog.Items {
		c.item = i
		for _, t := range item.Writes() {
			c.placeTemporary(t)
		}
		if err := c.compileItem(item); err != nil {
			return nil, err
		}
	}
	if c.arena.overflows {
		return nil, fmt.Errorf("%w: the live temporaries exceed %d bytes", native.ErrMemory, math.MaxInt)
	}
	if err := c.env.kernels.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w", native.ErrMemory, err)
	}
	c.finish(prog)
	made.steps, made.checks = c.steps, prog.Checks
	if ranks.Has(s.entry.Graph) {
		made.world = p.mesh.World()
	}
	return made, nil
}

// writesState reports whether running a graph writes a parameter or a state.
func writesState(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return o.State })
}

// lowerComposites returns a graph of ops that the backend computes itself. It expands
// composites; causal attention is first split into blocks.
func lowerComposites(g *ir.Graph) (*ir.Graph, error) {
	kept := func(n *ir.Node) bool { return claims(n) || attentionBlockSize(n) > 0 }
	g, err := passes.Run(g, passes.Options{Claim: func(n *ir.Node) bool { return kept(n) || countsByScatter(n) }})
	if err != nil {
		return nil, err
	}
	before := g
	if g, err = passes.Replace(g, scatterOnes); err != nil {
		return nil, err
	}
	if g != before {
		if g, err = passes.Run(g, passes.Options{Claim: kept}); err != nil {
			return nil, err
		}
	}
	if g, err = cancelTransposes(g); err != nil || !hasBlockedAttention(g) {
		return g, err
	}
	if g, err = ir.Transform(g.Name(), func(b *ir.Builder) { blockAttention(b, g) }); err != nil {
		return nil, err
	}
	return passes.Run(g, passes.Options{Claim: claims})
}

// add emits a step of the current group.
func (c *compiler) add(s step) {
	c.steps = append(c.steps, s)
	c.entry.names[s] = c.group
}

// compileItem emits the steps of one item of a partition.
func (c *compiler) compileItem(item fusion.Item) error {
	switch item := item.(type) {
	case *fusion.Loop:
		return c.loop(item)
	case *fusion.Branch:
		return c.branch(item)
	case *fusion.While:
		return c.while(item)
	}
	g := item.(*fusion.Group)
	if len(g.Parts) == 0 {
		return c.compileGroup(g)
	}
	for _, part := range g.Parts {
		if err := c.compileGroup(part); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) compileGroup(g *fusion.Group) error {
	c.group = g.Name()
	switch g.Kind {
	case fusion.ContractKind:
		return c.contract(g)
	case fusion.PrefixKind:
		return c.scan(g)
	case fusion.ScatterKind:
		return c.scatter(g)
	case fusion.SortKind:
		return c.sort(g)
	case fusion.RoutineKind:
		return c.routine(g)
	case fusion.KernelsKind:
		if claims(g.Members[0].Node) {
			return c.routine(g)
		}
		return c.reference(g)
	}
	return c.nest(g.Name(), g.Code(), g.Outer, g.Inner, nil)
}

// nest emits the steps for code over outer and inner points, see [compiler.make]. The buffers of extra tensors, by ID, are added to those of the compiler.
func (c *compiler) nest(name string, code *fusion.Code, outer, inner []int, more map[int]*buffer) error {
	if product(outer) == 0 {
		return nil
	}
	maps.Copy(c.buffers, more)
	if product(inner) == 0 {
		dropInnerWork(code)
		inner = nil
	}
	elems := product(outer)
	code, outer, rest := splitBytes(c, code, outer)
	if rest != nil {
		if err := makeSteps(c, name, rest, []int{elems % 4}, nil); err != nil {
			return err
		}
	}
	arrays := newNestArrays(c, product(outer)*product(inner))
	pairs := arrays.realParts(code, outer)
	if len(code.Rows)+len(code.Points)+len(code.Stages) > 0 {
		outer, err := arrays.spread(name, code, outer)
		if err != nil {
			return err
		}
		if outer, inner, err = arrays.repeatRows(name, code, outer, inner); err != nil {
			return err
		}
		if len(code.Stages) > 0 {
			outer, inner = coalesce(code, outer, orderInner(code, inner))
		}
		if err := arrays.emit(name, code, outer, inner); err != nil {
			return err
		}
	}
	for _, s := range pairs {
		c.add(s)
	}
	return nil
}

// emit emits the steps of code, of its division among workers if it has one.
func (p *nestArrays) emit(name string, code *fusion.Code, outer, inner []int) error {
	if len(code.Stages) > 0 && product(outer)*product(inner) >= minDividedPoints {
		outer, inner = split(code, &code.Outer, outer), split(code, &code.Inner, inner)
		if d := p.divisionOf(name, code, outer, inner); d != nil {
			return d.emit()
		}
	}
	return p.emitWhole(name, code, outer, inner)
}

// emitWhole emits the steps of code that is not divided: of its stages, copies and transposes.
func (p *nestArrays) emitWhole(name string, code *fusion.Code, outer, inner []int) error {
	inner, err := p.stageReduction(name, code, outer, inner)
	if err != nil {
		return err
	}
	results, err := p.transposeRows(name, code, outer, inner)
	if err != nil {
		return err
	}
	for _, x := range separate(code, p.c.buffers) {
		if err := makeSteps(p.c, name, x, slices.Clone(outer), inner); err != nil {
			return err
		}
	}
	for _, x := range results {
		if err := makeSteps(p.c, name, x, slices.Concat(outer, inner), nil); err != nil {
			return err
		}
	}
	return nil
}

// separate returns the copies of a map that consists of several, such as the parts of complex numbers: each may be a
// transpose. Other code stays, as do copies of an array that is written.
func separate(code *fusion.Code, buffers map[int]*buffer) []*fusion.Code {
	if len(code.Rows) < 2 || len(code.Stages)+len(code.Points) > 0 {
		return []*fusion.Code{code}
	}
	var out []*fusion.Code
	for _, s := range code.Rows {
		written := func(x fusion.ElementStore) bool { return buffers[x.Tensor.ID] == buffers[s.Value.Ref] }
		if !isLoad(s.Value) || s.Guarded || slices.ContainsFunc(code.Rows, written) {
			return []*fusion.Code{code}
		}
		out = append(out, &fusion.Code{Outer: slices.Clone(code.Outer), Rows: []fusion.ElementStore{s}})
	}
	return out
}

// makeSteps emits the steps of [compiler.make].
func makeSteps(c *compiler, name string, code *fusion.Code, outer, inner []int) error {
	x, err := c.make(name, code, outer, inner)
	if err != nil {
		return err
	}
	for _, s := range x.steps {
		c.add(s)
	}
	switch len(x.nests) {
	case 0:
	case 1:
		c.add(newNestStep(x.nests[0], c.env, false))
	default:
		c.add(newPieces(x.nests, c.env))
	}
	return nil
}
