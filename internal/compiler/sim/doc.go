// Package sim runs kernels of the loop IR on the CPU and watches every access
// they make. What it finds, a *Fault, is wrong on every device, whatever the
// dialect: accesses out of bounds, races, barriers that not all threads reach,
// memory read before it is written.
//
// The threads of a workgroup run in lock step, statement by statement, each
// statement for all threads that take part in it. That order is one of the many
// that a device may choose; races are found by recording who touched each
// element since the last barrier, so none hides behind the order. Roles take turns, each
// until it waits; what one knows of the others' accesses is what the barriers tell that
// it has waited for, not what has happened.
//
// Arithmetic is that of scalar.Eval in mode Exact: each operation rounded to
// its type. Devices may contract a product and a sum into one rounding, so
// their results can differ in the last bits.
package sim
