// Package optim turns the graph of a loss into the graph of a training step, which computes
// gradients, clips them and updates the parameters.
//
//	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
//
// The input is an ir.Graph with parameters, the output an ir.Graph with states; [autodiff] computes
// the gradients. The file to read first is step.go.
//
// In the step graph each trained parameter is a state of the same name, so that an evaluation graph
// with parameter "w" shares it. The optimizer's own values are states with the prefix "optim/": the
// step count "optim/step", a rank-0 i32, and the slots (moments) of each parameter, such as
// "optim/m/w". All of them start as zeros: [Init] returns a graph that sets them.
//
// The learning rate is an input "lr", a rank-0 f32, which may change at every step; or a
// [Schedule], a function of the step count, and then there is no input.
//
// # Arithmetic
//
// Most updates are elementwise functions of a parameter, its gradient, its slots and a few scalars
// that are computed once a step, so that a compiler can fuse an update into one kernel. Parameters
// of 16-bit floating types are updated in f32, which is also the type of their slots. The formulas
// are those of torch.optim where it has the optimizer, and values agree with it up to rounding.
package optim
