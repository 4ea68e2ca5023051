package ir

// portName is what must be unique: ports share one space of names, plain
// outputs and state updates have one each.
type portName struct {
	name  string
	space portSpace
}

type portSpace uint8

const (
	spacePorts portSpace = iota
	spaceOutputs
	spaceStates
)

// Input declares an input: a value given anew with every run.
func (b *Builder) Input(name string, d DType, axes ...Dim) Value {
	return b.Port(InputPort, name, Type{d, axes})
}

// Param declares a parameter: a persistent value that the user gives before the first run
// that reads it. [Builder.SetState] may change it, as training does.
func (b *Builder) Param(name string, d DType, axes ...Dim) Value {
	return b.Port(ParamPort, b.within(name), Type{d, axes})
}

// State declares a state and returns its value at the start of a run.
// [Builder.SetState] gives its value at the end.
func (b *Builder) State(name string, d DType, axes ...Dim) Value {
	return b.Port(StatePort, b.within(name), Type{d, axes})
}

// Scope runs f, which builds a part of the graph, with a name before those that f gives:
// w becomes name/w where f declares it by [Builder.Param] or [Builder.State], updates it by
// [Builder.SetState] or has it declared by [Builder.Call], and so does a label, which is the
// scope's where f sets none. Scopes nest. Inputs, outputs and what [Builder.Port] declares
// keep their names. The error is of kind [ErrGraph] where there is no name or no function.
func (b *Builder) Scope(name string, f func()) {
	const word Op = "scope"
	if !b.Require(word, "name", name != "") || !b.Require(word, "function", f != nil) {
		return
	}
	scope, label := b.scope, b.label
	b.scope = b.within(name)
	b.Label("")
	f()
	b.scope, b.label = scope, label
}

// within returns a name in the scopes that are open; none stays none, and is refused.
func (b *Builder) within(name string) string {
	if b.scope == "" || name == "" {
		return name
	}
	return b.scope + "/" + name
}

// Port declares a port of any kind.
func (b *Builder) Port(kind PortKind, name string, t Type) Value {
	return b.port(name, kind, &PortAttrs{name, kind}, []Type{{t.DType, t.Shape.Clone()}})
}

// port declares a port from attributes and types that nothing changes any more.
func (b *Builder) port(name string, kind PortKind, attrs Attrs, types []Type) Value {
	if b.err != nil {
		return Value{}
	}
	if err := b.checkPort(kind, name, types[0]); err != nil {
		b.failDeclared(kindWord(kind), name, err)
		return Value{}
	}
	n := &Node{op: OpPort, def: mustDef(OpPort), attrs: attrs, types: types}
	v := b.place(n).Result(0)
	b.named[portName{name, spacePorts}] = len(b.ports)
	b.ports = append(b.ports, Port{name, kind, v})
	return v
}

func (b *Builder) checkPort(kind PortKind, name string, t Type) error {
	if kind > StatePort {
		return Errorf(ErrGraph, "there is no port kind %d", kind)
	}
	if err := checkType(t); err != nil {
		return err
	}
	if name == "" {
		return Errorf(ErrName, "%s without a name", kind)
	}
	if i, taken := b.named[portName{name, spacePorts}]; taken {
		return b.declaredTwice(name, b.ports[i])
	}
	return nil
}

// declaredTwice is the error for a second port of a name. Functions that declare their
// parameters meet it when they are called twice.
func (b *Builder) declaredTwice(name string, first Port) error {
	at := first.Value.node.pos.String()
	if at != "" {
		at = ", at " + at
	}
	remedy := ""
	if first.Kind != InputPort {
		remedy = ": to share it, pass on the value that was declared first; for another one, give it another name, or call what declares it within a scope"
	}
	return Errorf(ErrName, "%q is declared twice, first as %s %s%s%s", name, first.Kind, first.Value.Type(), at, remedy)
}

// Output declares an output.
func (b *Builder) Output(name string, v Value) {
	b.output(spaceOutputs, Output{Name: name, Value: v})
}

// SetState declares the value that a state, or a parameter, has after a run. Its type must
// be that of the state.
func (b *Builder) SetState(name string, v Value) {
	if b.err != nil {
		return
	}
	name = b.within(name)
	i, ok := b.named[portName{name, spacePorts}]
	if !ok || b.ports[i].Kind == InputPort {
		b.failDeclared(wordState, name, Errorf(ErrName, "there is no state %q", name))
		return
	}
	if t := b.ports[i].Value.Type(); b.owns(wordState, name, v) && !t.Equal(v.Type()) {
		b.failDeclared(wordState, name, mismatch(t, v.Type(), "state %q is %s, its new value %s", name, t, v.Type()))
		return
	}
	b.output(spaceStates, Output{Name: name, State: true, Value: v})
}

func (b *Builder) output(space portSpace, o Output) {
	word := wordOutput
	if o.State {
		word = wordState
	}
	if b.err != nil || !b.owns(word, o.Name, o.Value) {
		return
	}
	key := portName{o.Name, space}
	if _, taken := b.named[key]; taken {
		b.failDeclared(word, o.Name, Errorf(ErrName, "%q is declared twice", o.Name))
		return
	}
	if o.Name == "" {
		b.failDeclared(word, o.Name, Errorf(ErrName, "output without a name"))
		return
	}
	b.named[key] = len(b.outputs)
	b.outputs = append(b.outputs, o)
}

// The words by which errors call what a graph declares.
const (
	wordState  Op = "state"
	wordOutput Op = "output"
)

// kindWord is for kinds that may not exist.
func kindWord(kind PortKind) Op {
	if kind > StatePort {
		return OpPort
	}
	return Op(kind.String())
}

// failDeclared records an [*OpError] for a port or an output.
func (b *Builder) failDeclared(word Op, name string, err error) {
	b.Fail(&OpError{Op: word, Label: name, Pos: callerPos(), Err: err, declared: true})
}

// Require records an [*OpError] of kind [ErrGraph] where something that an op is made of,
// a function say, is not given. It reports whether b has no error.
func (b *Builder) Require(op Op, what string, given bool) bool {
	if b.err == nil && !given {
		b.failDeclared(op, "", Errorf(ErrGraph, "no %s given", what))
	}
	return b.err == nil
}

// owns records an error unless v is a value of this builder, to be declared by
// a word and a name.
func (b *Builder) owns(word Op, name string, v Value) bool {
	switch {
	case b.err != nil:
		return false
	case v.node == nil:
		b.failDeclared(word, name, Errorf(ErrGraph, "no value given"))
		return false
	case v.node.owner != b:
		b.failDeclared(word, name, Errorf(ErrGraph, "the value belongs to another graph"))
		return false
	}
	return true
}
