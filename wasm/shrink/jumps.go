package main

// label is an open block, loop or if.
type label struct {
	op byte
	at int // index of its instruction
}

// walk calls visit for each instruction with the labels that are open before it, the innermost
// last. The function's own label is not among them.
func (f *function) walk(visit func(at int, open []label)) {
	var open []label
	for at, i := range f.body {
		visit(at, open)
		switch i.op {
		case opBlock, opLoop, opIf:
			open = append(open, label{i.op, at})
		case opEnd:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
}

// dispatch is the code that enters a Go function in its middle: a loop around nested blocks
// that open together, and a br_table on PC_B (local variable 0) that leaves the block ending before
// the place.
type dispatch struct {
	loop    label
	targets []label // indexed by PC_B, the default last
}

// findDispatch returns a function's dispatch, if it has one that jumps can reach.
func (f *function) findDispatch() (found dispatch, ok bool) {
	f.walk(func(at int, open []label) {
		i := f.body[at]
		if i.op != opBrTable || ok || at == 0 || !f.body[at-1].is(opLocalGet, 0) {
			return
		}
		n := len(open) - 1
		for n >= 0 && open[n].op == opBlock {
			n--
		}
		if n < 0 || open[n].op != opLoop || open[n].at+len(open)-n != at-1 {
			return // other code lies between the loop and the table
		}
		found.loop, ok = open[n], true
		for _, depth := range i.labels {
			if int(depth) >= len(open) {
				ok = false
				return
			}
			found.targets = append(found.targets, open[len(open)-1-int(depth)])
		}
	})
	return found, ok
}

// straightenJumps replaces jumps through the dispatch by branches. Go's assembler writes every jump
// as "PC_B = place; br loop". A place further down is the end of an open block, so a branch reaches
// it. This is shorter and faster for the host to compile.
func (f *function) straightenJumps() {
	table, ok := f.findDispatch()
	if !ok {
		return
	}
	direct := map[int]int64{} // depth of the target, by the index of a jump's first of three instructions
	f.walk(func(at int, open []label) {
		if at < 2 || f.body[at].op != opBr || f.body[at-2].op != opI32Const || !f.body[at-1].is(opLocalSet, 0) {
			return
		}
		depth := int(f.body[at].a)
		if depth >= len(open) || open[len(open)-1-depth] != table.loop {
			return
		}
		target := table.targets[min(int(f.body[at-2].a), len(table.targets)-1)]
		for d := range open {
			if open[len(open)-1-d] == target {
				direct[at-2] = int64(d)
			}
		}
	})
	f.rewrite(func(at int) ([]instr, int) {
		if depth, ok := direct[at]; ok {
			return []instr{{op: opBr, a: depth}}, 3
		}
		return nil, 0
	})
	f.rewrite(func(at int) ([]instr, int) {
		if rest := f.body[at:]; len(rest) >= 3 && rest[0].is(opIf, emptyBlock) && rest[1].op == opBr && rest[1].a > 0 && rest[2].op == opEnd {
			return []instr{{op: opBrIf, a: rest[1].a - 1}}, 3
		}
		return nil, 0
	})
}

// rewrite replaces runs of instructions. replace returns the replacement of the run at an index and
// its length, 0 to keep the instruction there.
func (f *function) rewrite(replace func(at int) ([]instr, int)) {
	out := make([]instr, 0, len(f.body))
	for at := 0; at < len(f.body); {
		with, n := replace(at)
		if n == 0 {
			out = append(out, f.body[at])
			n = 1
		} else {
			out = append(out, with...)
		}
		at += n
	}
	f.body = out
}
