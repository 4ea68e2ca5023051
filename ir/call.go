package ir

// Call adds all nodes of g and returns the values of its plain outputs by name.
// inputs are the values of its ports by name. A parameter or a state that is not
// among them is that of b under the same name, within its [Builder.Scope], which is
// declared where b has none;
// a state that is not given is updated as g says, of one that is given only the
// value is used. An input must be given. Where g has symbols as sizes and values of
// constant sizes are given, g is bound to them ([Graph.Bind]).
//
// What goes wrong is recorded in b: an error of kind [ErrGraph] for no graph,
// [ErrName] for an input that is missing or a name that g has no port of, and
// [ErrShape] or [ErrDType] for a value that is not of the type of its port.
func (b *Builder) Call(g *Graph, inputs map[string]Value) map[string]Value {
	const word Op = "call"
	if b.err != nil {
		return nil
	}
	if err := g.Given(); err != nil {
		b.failDeclared(word, "", err)
		return nil
	}
	for _, name := range sortedKeys(inputs) {
		if _, ok := g.Port(name); !ok {
			b.failDeclared(word, g.name, Errorf(ErrName, "graph %q has no port %q", g.name, name))
			return nil
		}
	}
	g, err := g.bindTo(inputs)
	if err != nil {
		b.failDeclared(word, g.name, err)
		return nil
	}
	in := make([]Value, len(g.ports))
	for i, p := range g.ports {
		v, given := inputs[p.Name]
		switch {
		case !given && p.Kind == InputPort:
			b.failDeclared(word, g.name, Errorf(ErrName, "input %q of graph %q is not given", p.Name, g.name))
		case !given:
			v = b.own(p)
		}
		if t := p.Value.Type(); b.owns(word, p.Name, v) && !t.Equal(v.Type()) {
			b.failDeclared(word, g.name, mismatch(t, v.Type(), "%q of graph %q is %s, %s is given", p.Name, g.name, t, v.Type()))
		}
		in[i] = v
	}
	if b.err != nil {
		return nil
	}
	out := map[string]Value{}
	for i, v := range b.Splice(g, in) {
		switch o := g.outputs[i]; {
		case !o.State:
			out[o.Name] = v
		case !inputs[o.Name].Valid():
			b.SetState(o.Name, v)
		}
	}
	return out
}

// bindTo returns the graph with its symbols replaced by the constant sizes that some of its
// ports are given, or itself where they are given none.
func (g *Graph) bindTo(inputs map[string]Value) (*Graph, error) {
	sizes, from := map[string]int{}, map[string]string{}
	for _, p := range g.ports {
		v := inputs[p.Name]
		if v.node == nil || len(v.Shape()) != len(p.Value.Shape()) {
			continue // which is an error of its own
		}
		for axis, d := range p.Value.Shape() {
			n, constant := v.Shape()[axis].Const()
			symbol := d.String()
			if d.sym == "" || !constant || !isSymbol(symbol) {
				continue
			}
			if first, bound := sizes[symbol]; bound && first != n {
				return g, Shapef("%s of graph %q is %d by %q and %d by %q", symbol, g.name, first, from[symbol], n, p.Name)
			}
			sizes[symbol], from[symbol] = n, p.Name
		}
	}
	if len(sizes) == 0 {
		return g, nil
	}
	bound, err := g.Bind(sizes)
	if err != nil {
		return g, err
	}
	return bound, nil
}

// own returns the port of b that has the name of p, which another graph has, within
// the scope, declared if need be.
func (b *Builder) own(p Port) Value {
	name := b.within(p.Name)
	if i, ok := b.named[portName{name, spacePorts}]; ok {
		return b.ports[i].Value
	}
	return b.Port(p.Kind, name, p.Value.Type())
}
