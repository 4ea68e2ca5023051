package optim

import (
	"errors"
	"path"
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const (
	// StatePrefix is the prefix of the names of all optimizer states.
	StatePrefix = "optim/"
	// StepState is the step count of an optimizer without a name, a rank-0 i32.
	StepState = StatePrefix + "step"
	// RateInput is the learning rate input of a step without a schedule, a rank-0 f32.
	RateInput = "lr"
	// NormState is the state of [Options.MeasureNorm], named as the metrics of package nn.
	NormState = "metric/gradient norm"
)

// SlotState returns the name of a slot of a parameter: "optim/m/w" for slot "m" of parameter "w".
// For an optimizer with a name use [Options.SlotState].
func SlotState(slot, param string) string { return Options{}.SlotState(slot, param) }

// Optimizer is an update rule.
type Optimizer interface {
	// Slots names the states that the rule keeps for each parameter. They have the shape of the
	// parameter and start as zeros.
	Slots() []string
	// Begin adds the values that are computed once per step and returns the rule for one parameter.
	// rate and count are of rank 0 and of the same type, f32 or f64: the learning rate and the
	// number of this step, from 1. A hyperparameter outside its domain is recorded in b as an error
	// of kind [ir.ErrAttr].
	Begin(b *ir.Builder, rate, count ir.Value) Rule
}

// Slot is a state that a rule keeps for a parameter, with its name and shape.
type Slot struct {
	Name  string
	Shape ir.Shape
}

// ShapedSlots is an [Optimizer] whose slots depend on the type of the parameter. Its Slots method
// returns all possible names.
type ShapedSlots interface {
	Optimizer
	// SlotsFor returns the slots of a parameter of type param.
	SlotsFor(param ir.Type) []Slot
}

// slotsOf returns the slots of an optimizer for a parameter.
func slotsOf(o Optimizer, param ir.Type) []Slot {
	if s, ok := o.(ShapedSlots); ok {
		return s.SlotsFor(param)
	}
	var out []Slot
	for _, name := range o.Slots() {
		out = append(out, Slot{name, param.Shape})
	}
	return out
}

// Rule returns the new value of a parameter and of its slots, given the parameter, its gradient and
// the slots. All have the same floating element type, and the same shape except for slots of a
// [ShapedSlots] optimizer.
type Rule func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value)

// Options are the options of [Step]. The zero value has no clipping, groups, accumulation or
// averaging.
type Options struct {
	// Name separates the states of this optimizer from those of others in the same module, for
	// example the generator and the discriminator of a GAN: the states of "gen" are named
	// "optim/gen:step", "optim/gen:m/w" and so on. It must not contain '/' or ':'. If a module has
	// two steps that train different parameters, one of them needs a name: see [Check].
	Name string
	// Schedule gives the learning rate; nil means the input [RateInput].
	Schedule Schedule
	// ClipNorm limits the Euclidean norm of all gradients together; 0 means no limit. As in
	// torch.nn.utils.clip_grad_norm_, gradients with a larger norm are multiplied by
	// ClipNorm/(norm+1e-6).
	ClipNorm float64
	// ClipValue limits each element of a gradient to [-ClipValue, ClipValue], before ClipNorm; 0
	// means no limit.
	ClipValue float64
	// Maximize ascends: gradients are negated before they are accumulated.
	Maximize bool
	// Groups are parameters with their own optimizer or rate. A parameter belongs to the first
	// group that matches it.
	Groups []Group
	// Accumulate is the number of steps per update, which uses the mean of their gradients; 0 means
	// 1. The sums of gradients are the states "optim/sum/" followed by the name of the parameter.
	Accumulate int
	// Average, in (0, 1), keeps an exponential moving average a ← Average·a + (1−Average)·p of each
	// parameter, updated after every update, in the state "optim/average/" followed by its name; 0
	// keeps none.
	Average float64
	// Scale scales the loss before differentiation, for gradients in f16; nil means no scaling. The
	// outputs of the step are not scaled. A step with gradients that are not finite is skipped and
	// does not count, also not towards Accumulate.
	Scale *LossScale
	// Frozen names parameters that are not trained: by name, by a pattern of path.Match such as
	// "*/bias", or by scope such as "encoder" or "block[0-3]", which means all parameters in it.
	// They remain parameters of the step graph, as do those that are declared as frozen
	// ([ir.PortOptions]).
	Frozen []string
	// ConstantKeys allows random ops of the loss to draw the same numbers at every step, as fixed
	// random features do. Otherwise a random key that depends on no input and on no changing state
	// is an error, since dropout with such a key always drops the same elements.
	ConstantKeys bool
	// Missing selects what to do with a trained parameter that the loss does not depend on.
	Missing autodiff.Missing
	// MeasureNorm adds the Euclidean norm of all gradients together, before clipping, to the metric
	// "gradient norm", which rlx.Fit reports: the state [NormState], f32[2], sums the norms and
	// counts the steps.
	MeasureNorm bool
	// Policy chooses the residuals that reverse mode stores; nil stores all that the gradients need.
	Policy autodiff.Policy
	// Gradients, if not nil, rewrites the graph of the loss and its gradients before the update. It
	// returns a graph with the same ports and outputs: those of the loss, and "grad/" followed by
	// the name of each trained parameter. Package parallel has passes for several devices.
	Gradients func(g *ir.Graph) (*ir.Graph, error)
}

// Step returns the graph of a training step. It has the outputs of the loss graph, computed with
// the parameters before the step, and updates all parameters of a floating type by the gradients of
// the output lossName. The error is of kind [ir.ErrName] for an unknown loss or parameter,
// [ir.ErrAttr] for a hyperparameter outside its domain, and [ir.ErrGraph] for a random op with the
// same key at every step. Other errors are those of [autodiff.GradWith], for example if the loss
// does not depend on a parameter.
func Step(loss *ir.Graph, lossName string, opt Optimizer, o Options) (*ir.Graph, error) {
	if opt == nil {
		return nil, ir.Attrf("no optimizer given; a training step needs one")
	}
	if err := loss.NotNil(); err != nil {
		return nil, err
	}
	if err := o.checkName(); err != nil {
		return nil, err
	}
	if err := o.checkNoise(loss, lossName); err != nil {
		return nil, err
	}
	params, err := trained(loss, o.Frozen)
	if err != nil {
		return nil, err
	}
	groups, err := completeGroups(o.Groups, opt, params)
	if err != nil {
		return nil, err
	}
	s := &stepBuilder{options: o}
	if o.Scale != nil {
		s.scaling = &scaling{LossScale: *o.Scale, options: o}
		if loss, err = scaledLoss(loss, lossName); err != nil {
			return nil, err
		}
		lossName = scaledOutput
	}
	s.loss = loss
	s.grads, err = autodiff.GradWith(loss, autodiff.GradOptions{Loss: lossName, Wrt: params, Missing: o.Missing, Policy: o.Policy})
	if path, ok := errors.AsType[*autodiff.NoPathError](err); ok {
		return nil, format.Errorf("%w: no step would change %q; freeze it (optim.Options.Frozen), or take its gradient for zeros (optim.Options.Missing)", err, path.Port)
	}
	if err != nil {
		return nil, err
	}
	if err := s.rewriteGradients(); err != nil {
		return nil, err
	}
	for _, name := range params {
		s.params = append(s.params, param{name: name, group: groupOf(groups, name)})
	}
	return ir.Build(loss.Name(), s.build)
}

// rewriteGradients applies [Options.Gradients]. The error is of kind [ir.ErrGraph] if the result has
// other ports or outputs.
func (s *stepBuilder) rewriteGradients() error {
	if s.options.Gradients == nil {
		return nil
	}
	g, err := s.options.Gradients(s.grads)
	if err != nil {
		return err
	}
	if err := g.NotNil(); err != nil {
		return err
	}
	samePort := func(a, b ir.Port) bool {
		return a.Name == b.Name && a.Kind == b.Kind && a.Value.Type().Equal(b.Value.Type())
	}
	sameOutput := func(a, b ir.Output) bool {
		return a.Name == b.Name && a.State == b.State && a.Value.Type().Equal(b.Value.Type())
	}
	if !slices.EqualFunc(g.Ports(), s.grads.Ports(), samePort) || !slices.EqualFunc(g.Outputs(), s.grads.Outputs(), sameOutput) {
		return ir.Errorf(ir.ErrGraph, "optim.Options.Gradients returned a graph with other ports or outputs than those of %q", s.grads.Name())
	}
	s.grads = g
	return nil
}

// trained returns the names of the parameters that are not frozen, by a pattern or where they are
// declared.
func trained(g *ir.Graph, frozen []string) ([]string, error) {
	matched := make([]bool, len(frozen))
	var out []string
	for _, p := range g.Ports() {
		if p.Kind != ir.ParamPort {
			continue
		}
		stays := p.Options().Frozen
		for i, pattern := range frozen {
			if Covers(pattern, p.Name) {
				matched[i], stays = true, true
			}
		}
		if !stays && isTrained(p.Value.DType()) {
			out = append(out, p.Name)
		}
	}
	if i := slices.Index(matched, false); i >= 0 {
		return nil, ir.Errorf(ir.ErrName, "unknown parameter %q of graph %q in Frozen: it has %q", frozen[i], g.Name(), paramNames(g))
	}
	if out == nil {
		return nil, ir.Errorf(ir.ErrName, "graph %q has no parameters to train", g.Name())
	}
	return out, nil
}

func paramNames(g *ir.Graph) (names []string) {
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			names = append(names, p.Name)
		}
	}
	return names
}

// Covers reports whether a pattern of path.Match, such as "*/bias", matches a name or one of its
// scopes: "encoder" and "block[0-3]" cover all names in them.
func Covers(pattern, name string) bool {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		scope := name[:end]
		if like, _ := path.Match(pattern, scope); like || pattern == scope {
			return true
		}
	}
	return false
}

// isTrained reports whether parameters of the element type are trained.
func isTrained(d ir.DType) bool { return d.IsFloat() && derive.Differentiable(d) }

// stepBuilder builds a training step.
type stepBuilder struct {
	loss, grads *ir.Graph
	options     Options
	params      []param
	scaling     *scaling // nil if the loss is not scaled
}

// param is a trained parameter: its value before the step, its gradient and its slots. Gradient and
// slots have the type of the update.
type param struct {
	name        string
	group       *Group
	value, grad ir.Value
	slots       []ir.Value
}

func (s *stepBuilder) build(b *ir.Builder) {
	before, results := s.forward(b)
	scalar := s.scalarType()
	// The update reads the new count only, so that the old one can be overwritten in place before
	// it.
	done := b.State(s.options.StepState(), ir.I32)
	next := ops.Add(b, done, ops.Const(b, ir.I32, 1))
	due, updates := s.due(b, next)
	count := ops.Convert(b, updates, scalar)
	var rate ir.Value
	if s.options.Schedule == nil {
		rate = ops.Convert(b, b.Input(RateInput, ir.F32), scalar)
	} else {
		rate = s.options.Schedule(b, ops.Sub(b, count, ops.Const(b, scalar, 1)))
	}
	if s.scaling != nil {
		s.scaling.unscale(b, s.params)
	}
	s.copyOutputs(b, before, results)
	s.measure(b)
	s.accumulate(b, due)
	s.clip(b, scalar)
	rules := map[*Group]Rule{}
	for _, p := range s.params {
		rule, begun := rules[p.group]
		if !begun {
			check(b, "step", hyper{"Rate", p.group.Rate, notNegative})
			rule = s.begin(b, p.group, scale(b, rate, orDefault(p.group.Rate, 1)), count)
			rules[p.group] = rule
		}
		if b.Err() != nil {
			return
		}
		s.update(b, rule, p, due, count)
	}
	b.SetState(s.options.StepState(), s.scaling.unlessSkipped(b, next, done))
	if s.scaling != nil {
		s.scaling.end(b)
	}
}

// forward adds the loss and its gradients, with the trained parameters as states. It returns the ports
// and the results of the loss graph.
func (s *stepBuilder) forward(b *ir.Builder) (in, results []ir.Value) {
	in = make([]ir.Value, len(s.grads.Ports()))
	for i, port := range s.grads.Ports() {
		k := s.find(port.Name)
		if s.scaling != nil && port.Name == ScaleState {
			in[i] = s.scaling.begin(b)
			continue
		}
		in[i] = b.CopyPort(port)
		if k < 0 {
			continue
		}
		s.params[k].value = in[i]
		for _, slot := range slotsOf(s.params[k].group.Optimizer, port.Value.Type()) {
			v := b.State(s.options.SlotState(slot.Name, port.Name), updateType(port.Value.DType()), slot.Shape...)
			s.params[k].slots = append(s.params[k].slots, v)
		}
	}
	out := b.Splice(s.grads, in)
	n := len(s.loss.Outputs())
	for i := range s.params {
		p := &s.params[i]
		p.grad = ops.Convert(b, out[n+i], updateType(p.value.DType()))
		if s.options.Maximize {
			p.grad = ops.Neg(b, p.grad)
		}
	}
	return in, out[:n]
}

// copyOutputs declares the outputs of the loss graph. Its states, such as running statistics, stay as
// they were before a step that is skipped.
func (s *stepBuilder) copyOutputs(b *ir.Builder, before, results []ir.Value) {
	old := map[string]ir.Value{}
	for i, port := range s.grads.Ports() {
		old[port.Name] = before[i]
	}
	for i, o := range s.grads.Outputs()[:len(results)] {
		switch {
		case o.Name == scaledOutput:
		case o.State:
			b.CopyOutput(o, s.scaling.unlessSkipped(b, results[i], old[o.Name]))
		default:
			b.CopyOutput(o, results[i])
		}
	}
}

// find returns the index of a trained parameter, -1 for any other port.
func (s *stepBuilder) find(name string) int {
	return slices.IndexFunc(s.params, func(p param) bool { return p.name == name })
}

// scalarType returns the type of the learning rate and values computed from it: f64 if a parameter
// is f64, else f32.
func (s *stepBuilder) scalarType() ir.DType {
	for _, p := range s.params {
		if p.value.DType() == ir.F64 {
			return ir.F64
		}
	}
	return ir.F32
}

// updateType returns the type in which a parameter is updated.
func updateType(d ir.DType) ir.DType {
	if d == ir.F64 {
		return d
	}
	return ir.F32
}

// measure adds the norm of the gradients to its metric, unless it is not finite and the step skipped.
func (s *stepBuilder) measure(b *ir.Builder) {
	if !s.options.MeasureNorm {
		return
	}
	grads := make([]ir.Value, len(s.params))
	for i, p := range s.params {
		grads[i] = ops.Convert(b, p.grad, ir.F32)
	}
	old := b.State(NormState, ir.F32, ir.N(2))
	now := ops.Add(b, old, ops.Stack(b, 0, GlobalNorm(b, grads), ops.Const(b, ir.F32, 1)))
	b.SetState(NormState, s.scaling.unlessSkipped(b, now, old))
}

// clip limits the elements of the gradients, and then their global norm.
func (s *stepBuilder) clip(b *ir.Builder, scalar ir.DType) {
	if v := s.options.ClipValue; v != 0 {
		check(b, "step", hyper{"ClipValue", v, positive})
		for i := range s.params {
			g := &s.params[i].grad
			*g = ops.Clamp(b, *g, ops.ConstLike(b, *g, -v), ops.ConstLike(b, *g, v))
		}
	}
	limit := s.options.ClipNorm
	if limit == 0 {
		return
	}
	check(b, "step", hyper{"ClipNorm", limit, positive})
	grads := make([]ir.Value, len(s.params))
	for i, p := range s.params {
		grads[i] = ops.Convert(b, p.grad, scalar)
	}
	scale := clipFactor(b, GlobalNorm(b, grads), limit)
	for i := range s.params {
		p := &s.params[i]
		p.grad = ops.Mul(b, p.grad, ops.Convert(b, scale, p.grad.DType()))
	}
}

// update adds the update of one parameter. It takes effect if due is true or an invalid Value.
func (s *stepBuilder) update(b *ir.Builder, rule Rule, p param, due, count ir.Value) {
	wide := ops.Convert(b, p.value, p.grad.DType())
	value, slots := rule(b, wide, p.grad, p.slots)
	if b.Err() == nil && len(slots) != len(p.slots) {
		b.Fail(ir.Errorf(ir.ErrGraph, "the optimizer returned %d slots for %q; it must return %d", len(slots), p.name, len(p.slots)))
		return
	}
	now := func(name string, old, v ir.Value) {
		if v == old { // another entry updates it
			b.SetState(name, old)
			return
		}
		if due.Valid() {
			v = ops.Select(b, due, v, old)
		}
		b.SetState(name, s.scaling.unlessSkipped(b, v, old))
	}
	now(p.name, p.value, ops.Convert(b, value, p.value.DType()))
	for i, slot := range slotsOf(p.group.Optimizer, p.value.Type()) {
		now(s.options.SlotState(slot.Name, p.name), p.slots[i], slots[i])
	}
	if a := s.options.Average; a != 0 {
		check(b, "step", hyper{"Average", a, unit})
		name := s.options.SlotState(averageSlot, p.name)
		old := b.State(name, wide.DType(), wide.Shape()...)
		first := ops.Eq(b, count, ops.OnesLike(b, count))
		now(name, old, ops.Select(b, first, value, movingAverage(b, old, value, a)))
	}
}

// GlobalNorm returns the Euclidean norm of all elements of the given values together, of rank 0.
// The values have the same floating element type, which is that of the norm.
func GlobalNorm(b *ir.Builder, values []ir.Value) ir.Value {
	squares := make([]ir.Value, len(values))
	for i, v := range values {
		squares[i] = ops.Mul(b, v, v)
	}
	return ops.Sqrt(b, ops.SumAll(b, squares...))
}

// clipFactor returns the factor, at most 1, that limits the global norm of the gradients to limit.
// The 1e-6 is that of torch.nn.utils.clip_grad_norm_ and avoids a division by zero.
func clipFactor(b *ir.Builder, norm ir.Value, limit float64) ir.Value {
	d := norm.DType()
	f := ops.Div(b, ops.Const(b, d, limit), ops.Add(b, norm, ops.Const(b, d, 1e-6)))
	return ops.Min(b, f, ops.Const(b, d, 1))
}
