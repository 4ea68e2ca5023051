package cpu

// fastOp returns the loop of an operation that is worth one, nil for others.
func fastOp(*files, *instr) op { return nil }
