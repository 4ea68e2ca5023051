package ir

// Context returns the value that [Builder.SetContext] set for a key, or nil. Packages keep there
// what their functions share while one graph is built: the mode of layers, for example. The graph
// does not contain it, and the builders of subgraphs start without values.
func (b *Builder) Context(key any) any { return b.context[key] }

// SetContext sets the value of a key. The key must be comparable; a package should use a key of an
// unexported type.
func (b *Builder) SetContext(key, value any) {
	if b.context == nil {
		b.context = map[any]any{}
	}
	b.context[key] = value
}

// ScopeName returns the names of the open scopes joined by slashes, or "" outside of all scopes.
func (b *Builder) ScopeName() string { return b.scope }

// Unscoped calls f outside of all scopes, for values that the whole graph shares. Names and labels
// are then not prefixed. The error is of kind [ErrGraph] if f is nil.
func (b *Builder) Unscoped(f func()) {
	if !b.Require("scope", "function", f != nil) {
		return
	}
	scope, label := b.scope, b.label
	b.scope = ""
	b.Label("")
	f()
	b.scope, b.label = scope, label
}

// Declared returns the port of that full name, scopes included, if b has declared it.
func (b *Builder) Declared(name string) (Port, bool) {
	i, ok := b.named[portName{name, spacePorts}]
	if !ok {
		return Port{}, false
	}
	return b.ports[i], true
}

// Ports returns the ports declared so far, in order. The slice is shared and must not be changed.
func (b *Builder) Ports() []Port { return b.ports }
