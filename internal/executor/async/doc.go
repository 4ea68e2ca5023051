// Package async executes plans on devices that run asynchronously: GPUs. A [Program] is a
// [native.Program]: it checks what callers give, keeps runs in order and delivers outputs
// and errors. A backend implements [Machine], which holds the plan's memory and kernels on
// a device, and [Stage], the staging memory of a run in flight.
//
// The package is between the plans of internal/compiler/plan and the backends cuda and metal. The
// entries of a plan share temporary memory, so the device computes one run at a time. Runs are
// begun without waiting for the end of those before; copies of inputs overlap with kernels where
// the [Machine] does so.
//
// Start reading at machine.go, then program.go and entry.go.
package async
