package ir

// portName is the key under which names must be unique: ports share one namespace; plain outputs
// and state updates have one each.
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

// Input declares an input, a value given at every run.
func (b *Builder) Input(name string, d DType, axes ...Dim) Value {
	return b.Port(InputPort, name, Type{d, axes})
}

// Param declares a parameter, a persistent value that must be set before the first run that reads
// it. [Builder.SetState] may update it, as training does.
func (b *Builder) Param(name string, d DType, axes ...Dim) Value {
	return b.Port(ParamPort, b.scoped(name), Type{d, axes})
}

// State declares a state and returns its value at the start of a run. [Builder.SetState] sets its
// value at the end.
func (b *Builder) State(name string, d DType, axes ...Dim) Value {
	return b.Port(StatePort, b.scoped(name), Type{d, axes})
}

// Scope calls f and prefixes names with name and a slash: those of [Builder.Param], [Builder.State]
// and [Builder.SetState], those of parameters and states declared by [Builder.Call], and labels; a
// node without a label gets the scope's name. Scopes nest. Inputs, outputs and ports declared by
// [Builder.Port] keep their names. The error is of kind [ErrGraph] if the name is empty or f is
// nil.
func (b *Builder) Scope(name string, f func()) {
	const word Op = "scope"
	if !b.Require(word, "name", name != "") || !b.Require(word, "function", f != nil) {
		return
	}
	scope, label := b.scope, b.label
	b.scope = b.scoped(name)
	b.Label("")
	f()
	b.scope, b.label = scope, label
}

// scoped returns a name prefixed by the open scopes. An empty name stays empty and is rejected
// later.
func (b *Builder) scoped(name string) string {
	if b.scope == "" || name == "" {
		return name
	}
	return b.scope + "/" + name
}

// Port declares a port of any kind.
func (b *Builder) Port(kind PortKind, name string, t Type) Value {
	return b.port(name, kind, &PortAttrs{name, kind}, []Type{{t.DType, t.Shape.Clone()}})
}

// port declares a port from attributes and types that are not modified later.
func (b *Builder) port(name string, kind PortKind, attrs Attrs, types []Type) Value {
	if b.err != nil {
		return Value{}
	}
	if err := b.checkPort(kind, name, types[0]); err != nil {
		b.failDeclared(kindWord(kind), name, err)
		return Value{}
	}
	n := &Node{op: OpPort, def: mustDef(OpPort), attrs: attrs, types: types}
	v := b.appendNode(n).Result(0)
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

// declaredTwice returns the error for a second port of the same name. It occurs when a function
// that declares its parameters is called twice.
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

// SetState declares the value of a state or parameter after a run. Its type must be that of the
// state.
func (b *Builder) SetState(name string, v Value) {
	if b.err != nil {
		return
	}
	name = b.scoped(name)
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

// The names of declarations in errors.
const (
	wordState  Op = "state"
	wordOutput Op = "output"
)

// kindWord returns the name of a port kind, which may be invalid.
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

// Require records an [*OpError] of kind [ErrGraph] unless given: a required part of an op, such as
// a function, is missing. It reports whether b has no error.
func (b *Builder) Require(op Op, what string, given bool) bool {
	if b.err == nil && !given {
		b.failDeclared(op, "", Errorf(ErrGraph, "no %s given", what))
	}
	return b.err == nil
}

// owns records an error unless v is a value of this builder. word and name describe the declaration
// in the error.
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
