// Package native is what devices look like to a Go program: the [Backend]
// interface, the registry that backends enter when they are imported, tensors
// in host memory, and the errors that all backends share.
//
// A program compiles a module for one backend and runs its entries:
//
//	b, err := native.Lookup("cpu")
//	p, err := b.Compile(ctx, module, native.Options{})
//	err = p.Set(ctx, "w", native.Float32s(w, 64, 10))
//	run, err := p.Run(ctx, "step", map[string]native.Tensor{"x": x, "labels": labels})
//	out, err := run.Wait(ctx)
//
// What is run over and over is bound once, after which a run allocates nothing:
// see [Program.Bind]. Package rlx, at the root of the module, is the
// convenient face of all this.
package native
