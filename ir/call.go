package ir

// Call adds all nodes of g and returns the values of its plain outputs by name. inputs maps names
// of ports of g to values. A parameter or state not in inputs is the port of b with the same name,
// within its [Builder.Scope]; it is declared if b has none, and updated as in g. If a state is in
// inputs, g reads that value and its update is dropped. All inputs of g are required. A symbol that
// is the size of an axis of an input is bound to the size of the given value, constant or symbolic
// ([Graph.Substitute]).
//
// Errors are recorded in b: of kind [ErrGraph] if g is nil, [ErrName] for a missing input or an
// unknown name, and [ErrShape] or [ErrDType] for a value that does not have the type of its port.
func (b *Builder) Call(g *Graph, inputs map[string]Value) map[string]Value {
	const word Op = "call"
	if b.err != nil {
		return nil
	}
	if err := g.NotNil(); err != nil {
		b.failDeclared(word, "", err)
		return nil
	}
	for _, name := range sortedKeys(inputs) {
		if _, ok := g.Port(name); !ok {
			b.failDeclared(word, g.name, Errorf(ErrName, "unknown port %q of graph %q", name, g.name))
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
			b.failDeclared(word, g.name, Errorf(ErrName, "input %q of graph %q has no value", p.Name, g.name))
		case !given:
			v = b.portFor(p)
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

// bindTo returns the graph with its symbols replaced by the sizes of the given inputs, or the graph itself
// if none differs.
func (g *Graph) bindTo(inputs map[string]Value) (*Graph, error) {
	sizes, from, same := map[string]Dim{}, map[string]string{}, true
	for _, p := range g.ports {
		v := inputs[p.Name]
		if v.node == nil || len(v.Shape()) != len(p.Value.Shape()) {
			continue // reported by Call
		}
		for axis, d := range p.Value.Shape() {
			symbol, n := d.String(), v.Shape()[axis]
			if d.sym == "" || !isSymbol(symbol) {
				continue
			}
			if first, bound := sizes[symbol]; bound && first != n {
				return g, Shapef("size %s of graph %q is %s in %q and %s in %q", symbol, g.name, first, from[symbol], n, p.Name)
			}
			sizes[symbol], from[symbol], same = n, p.Name, same && n == d
		}
	}
	if same {
		return g, nil
	}
	bound, err := g.Substitute(sizes)
	if err != nil {
		return g, err
	}
	return bound, nil
}

// portFor returns the port of b with the name of p within the current scope, and declares it if needed.
func (b *Builder) portFor(p Port) Value {
	name := b.scoped(p.Name)
	if i, ok := b.named[portName{name, spacePorts}]; ok {
		return b.ports[i].Value
	}
	return b.portWith(name, p.Kind, p.Options(), p.Value.Type())
}
