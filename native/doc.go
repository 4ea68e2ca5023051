// Package native defines the interface between a Go program and its devices:
// [Backend] and [Program], the registry of backends, [Tensor] for values in host
// memory, and the errors that all backends share.
//
// Its input is an [ir.Module], its output a [Program]; the compiler and the executors are internal.
// Start reading at backend.go.
//
// A program compiles a module for one backend and runs its entries:
//
//	b, err := native.Lookup("cpu")
//	p, err := b.Compile(ctx, module, native.Options{})
//	err = p.Set(ctx, "w", native.Float32s(w, 64, 10))
//	run, err := p.Run(ctx, "step", map[string]native.Tensor{"x": x, "labels": labels})
//	out, err := run.Wait(ctx)
//
// [Program.Bind] fixes the memory of an entry that runs many times; its runs then
// allocate nothing. Package rlx, at the root of the module, is a more convenient
// API on top of this one.
package native
