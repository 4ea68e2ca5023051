// Package matmul lowers contractions: matrix products and convolutions, with their prologues and
// epilogues.
//
// Input: a group of kind ContractKind. Output: one kernel, or more where operands are staged or
// the contracted space is split (split-K). space.go lists the candidates of all kinds and picks
// one; tile.go has the shapes of tiled kernels with their costs, kernel.go the tiled kernel and its
// epilogue, pipeline.go its form with asynchronous copies, fragment.go that with subgroup
// fragments; mma.go multiplies by warp-group MMA, of operands that operand.go copies to shared
// memory, im2col.go those of convolutions in TMA's im2col mode, relayout.go others of convolutions by a copy
// with their channels or their batch last; stationary.go multiplies few columns by an operand that stays in shared
// memory, packed.go by packed weights, which it unpacks to registers; library.go calls a library of the device. A contraction
// that none of these fits is a reduction of package reduce. Read space.go first.
package matmul
