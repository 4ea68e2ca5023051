// Package exec runs plans natively with wgpu, through github.com/cogentcore/webgpu. It
// needs cgo. It is the executor below package webgpu; start reading at session.go and
// entry.go.
//
//	dev, err := exec.Open(exec.Options{})
//	s, err := dev.Load(ctx, p)
//	step, err := s.Entry("step")
//	err = step.Set(ctx, "x", x)        // as often as it changes
//	reading, err := step.Run(ctx, 1, "loss")
//	values, err := reading.Wait(ctx)   // now, or some steps later
//
// A run is one submission. At most [InFlight] runs are in flight. Reads of outputs and
// states are part of the submission of their run.
//
// # What the binding allows
//
// Its wgpu is version 0.19.4: f32 only, without subgroups and f16. It cannot report a lost
// device (Go's pointer checks refuse the callback), and wgpu aborts the process on errors
// outside error scopes: a lost device, memory exhaustion. [ErrLost] and [ErrMemory] are
// returned where the binding reports them. Waits poll the device, since wgpu's own wait
// returns after five seconds with unfinished work; callbacks are registered only when they
// fire at the next poll, since the binding does not keep them alive; and devices are never
// released, since wgpu confuses their objects.
package exec
