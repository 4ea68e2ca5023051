// Package exec runs plans natively, on the WebGPU implementation wgpu through
// github.com/cogentcore/webgpu. It needs cgo.
//
//	dev, err := exec.Open(exec.Options{})
//	s, err := dev.Load(ctx, p)
//	step, err := s.Entry("step")
//	err = step.Set(ctx, "x", x)        // as often as it changes
//	reading, err := step.Run(ctx, 1, "loss")
//	values, err := reading.Wait(ctx)   // now, or some steps later
//
// A run is one submission. Runs wait only while [InFlight] of them are under
// way; values that are read travel with the run that is named to read them.
//
// # What the binding allows
//
// Its wgpu is version 0.19.4: f32 only, no subgroups, no f16. It offers no way
// to learn of a lost device (passing a callback is refused by Go's pointer
// checks), and wgpu ends the process on errors that no error scope holds: a lost
// device, and memory that runs out. [ErrLost] and [ErrMemory] are returned where
// the binding lets the news through. Waiting polls the device, since wgpu's own
// waiting gives up after five seconds and then takes unfinished work as done;
// callbacks are asked for only when they can come at once, because the binding
// does not keep them alive for long; and devices are kept, because wgpu confuses
// the objects of devices that come and go.
package exec
