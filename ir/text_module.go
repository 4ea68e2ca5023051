package ir

// String returns the text form of a module, which [ParseModule] reads: that of its graphs, each with
// the name of its entry. An entry without a graph, which no module has, is left out.
func (m *Module) String() string {
	pr := &printer{}
	for _, e := range m.Entries {
		if e.Graph != nil {
			pr.named(e.Graph, e.Name, "")
		}
	}
	return pr.sb.String()
}

// ParseModule reads one graph or several in the text form ([Parse]) as the entries of a module with
// the given name. Each graph is the entry of its name. The errors are those of Parse, a
// [*SyntaxError] with the kinds of [NewModule] for graphs that make no module.
func ParseModule(name, text string) (*Module, error) {
	p := &parser{text: text, splats: &splatBudget{}}
	var entries []Entry
	start := p.space()
	for p.err == nil && (len(entries) == 0 || p.pos < len(p.text)) {
		g := p.graph(0)
		p.space()
		if p.err == nil {
			entries = append(entries, Entry{g.Name(), g})
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	m, err := NewModule(name, entries...)
	if err != nil {
		p.fail(start, err, err.Error())
		return nil, p.err
	}
	return m, nil
}
