// Package optim turns the graph of a loss into the graph of a training step:
// gradients, clipping and the update of every parameter, as one graph.
//
//	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
//
// In the step graph each trained parameter is a state of the same name, so that
// an evaluation graph with the parameter "w" shares it. What the optimiser keeps
// for itself are states too, named "optim/" and on: the number of steps done,
// "optim/step", a rank-0 i32, and the moments of each parameter,
// "optim/m/w". All of them start as zeros: [Init] is a graph that makes them so.
//
// The learning rate is an input "lr", a rank-0 f32, that may change with every
// step at no cost; or a [Schedule] of the number of steps done, and then no
// input at all.
//
// # Arithmetic
//
// Each parameter is updated element by element, from its own value, gradient
// and moments and a few scalars that are computed once a step, so that a
// compiler can make one kernel of the whole update. Parameters of 16-bit
// floating types are updated in f32, which is also the type of their moments.
// Formulas are those of torch.optim, and values agree with it to rounding.
package optim
