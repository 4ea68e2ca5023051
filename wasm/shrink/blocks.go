package main

// dropBlocks removes blocks that no branch targets. Go's assembler opens a block at every possible
// entry or jump target of a function.
func (f *function) dropBlocks() {
	used := map[int]bool{} // indices of the opening instructions
	target := func(open []label, depth int64) {
		if n := len(open) - 1 - int(depth); n >= 0 {
			used[open[n].at] = true
		}
	}
	f.walk(func(at int, open []label) {
		switch i := f.body[at]; i.op {
		case opBr, opBrIf:
			target(open, i.a)
		case opBrTable:
			for _, depth := range i.labels {
				target(open, int64(depth))
			}
		}
	})
	gone := func(l label) bool { return l.op == opBlock && !used[l.at] }
	drop := map[int]bool{}
	f.walk(func(at int, open []label) {
		i := &f.body[at]
		closer := func(depth int64) int64 {
			less := int64(0)
			for d := range min(depth, int64(len(open))) {
				if gone(open[len(open)-1-int(d)]) {
					less++
				}
			}
			return depth - less
		}
		switch i.op {
		case opBlock:
			drop[at] = !used[at]
		case opEnd:
			drop[at] = len(open) > 0 && gone(open[len(open)-1])
		case opBr, opBrIf:
			i.a = closer(i.a)
		case opBrTable:
			for n, depth := range i.labels {
				i.labels[n] = uint32(closer(int64(depth)))
			}
		}
	})
	f.rewrite(func(at int) ([]instr, int) {
		if drop[at] {
			return nil, 1
		}
		return nil, 0
	})
}
