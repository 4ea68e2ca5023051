package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bodies that replace those of functions.
var (
	returns = zeros(0, 0)
	traps   = (&function{body: []instr{{op: opUnreachable}, {op: opEnd}}}).write()
)

// zeros returns the body of a function that does nothing, and whose results, words of 8
// bytes that begin at a place of the stack, are zero.
func zeros(at int64, words int) []byte {
	var body []instr
	for range words {
		body = append(body, instr{op: opGlobalGet, a: spGlobal}, instr{op: opI64Const}, instr{op: opI64Store, a: 3, b: at})
		at += 8
	}
	return (&function{body: append(body, // with the return address off the stack, and not to unwind
		instr{op: opGlobalGet, a: spGlobal}, instr{op: opI32Const, a: 8}, instr{op: opI32Add}, instr{op: opGlobalSet, a: spGlobal},
		instr{op: opI32Const}, instr{op: opEnd})}).write()
}

// replacement is a body for functions of Go's runtime.
type replacement struct {
	// unless names a function without which the others have nothing to do. The
	// linker leaves it out of a program that does not use it.
	unless string
	with   []byte
	names  []string // one that ends in a star stands for all that begin so
}

var replacements = []replacement{
	// What only reports: it has no results, and what it prints says nothing without
	// names and lines. The message of a panic is printed by others.
	{"", returns, []string{
		"runtime.traceback", "runtime.traceback1", "runtime.tracebackothers", "runtime.tracebacksomeothers",
		"runtime.goroutineheader", "runtime.schedtrace", "runtime.dumpgstatus", "runtime.gcDumpObject",
		"runtime.dumpScanStats", "runtime.printScavTrace", "runtime.tracebackHexdump", "runtime.hexdumpWords",
		"runtime.printcreatedby", "runtime.printanycustomtype",
	}},
	// Checks, at each start, of the tables that the linker wrote and of the compiler, and what
	// is to be done for modules of Go loaded later.
	{"", returns, []string{"runtime.moduledataverify1", "runtime.check", "runtime.typelinksinit"}},
	// Before the runtime sees that nobody reads the profile of memory, it may take a sample.
	{"runtime.MemProfile", returns, []string{"runtime.mProf_Malloc", "runtime.mProf_NextCycle", "runtime.mProf_Flush", "runtime.mProf_PostSweep"}},
	// What tells of a fault in Go's runtime or in unsafe code, and ends the program, as a trap
	// does; and what only settings of the environment ask for.
	{"", traps, []string{
		"runtime.badPointer", "runtime.(*mspan).reportZombies",
		"runtime.checkFinalizersAndCleanups", "runtime.preMallocgcDebug", "runtime.postMallocgcDebug",
	}},
	{"", zeros(16, 1), []string{"runtime.saveAncestors"}},
	// What nobody began: profiles, a search for leaks, bubbles of package testing/synctest, arenas,
	// calls of C.
	{"runtime.SetBlockProfileRate", traps, []string{"runtime.saveblockevent"}},
	{"runtime.goroutineProfileWithLabelsConcurrent", traps, []string{"runtime.doRecordGoroutineProfile"}},
	{"runtime.goroutineLeakGC", traps, []string{"runtime.findGoroutineLeaks"}},
	{"internal/synctest.Run", traps, []string{"runtime.(*synctestBubble).*"}},
	{"arena.runtime_arena_newArena", traps, []string{"runtime.(*mspan).setUserArenaChunkToFault"}},
	{"", traps, []string{"runtime.newextram", "runtime.(*unwinder).cgoCallers", "runtime.expandCgoFrames"}},
	// There is one thread and one processor, which is never stopped between two instructions.
	{"", traps, []string{"runtime.newm", "runtime.mexit", "runtime.(*p).destroy", "runtime.scanConservative"}},
	// Memory is never given back.
	{"", returns, []string{"runtime.(*scavengerState).wake"}},
	{"", traps, []string{"runtime.(*scavengerState).run", "runtime.(*scavengerState).sleep", "runtime.(*scavengerState).controllerFailed"}},
	// The name of the method of package reflect that a message says was misused, from a stack
	// without names.
	{"", zeros(8, 2), []string{"reflect.valueMethodName", "internal/reflectlite.methodName"}},
	{"", traps, []string{"runtime.(*Frames).Next"}},
	// Nothing of this runs before tracing was started.
	{"runtime.StartTrace", traps, []string{"runtime.traceLocker.*", "runtime.traceAdvance", "runtime.traceReader"}},
}

// tracing tells whether tracing was started.
const tracing = "runtime.traceLocker.ok"

// replaceRuntime replaces the bodies of functions of Go's runtime, given the
// names of all functions.
func replaceRuntime(bodies [][]byte, names []string) {
	for _, r := range replacements {
		if slices.Contains(names, r.unless) {
			continue
		}
		for number, name := range names {
			if name != tracing && slices.ContainsFunc(r.names, func(pattern string) bool { return matches(name, pattern) }) {
				bodies[number] = r.with
			}
		}
	}
}

func matches(name, pattern string) bool {
	prefix, all := strings.CutSuffix(pattern, "*")
	return name == pattern || all && strings.HasPrefix(name, prefix)
}

// dropUnused replaces the bodies of functions that nothing leads to: no export,
// no address in memory, and neither a call nor an address in the code of those.
// Functions keep their numbers, which addresses are made of. It returns the numbers of
// those that were dropped.
func dropUnused(m module, bodies [][]byte, known addresses) (dropped []int, err error) {
	imports, size := binary.Uvarint(m.section(importSection)) // all of them functions
	if size <= 0 {
		return nil, errDamaged
	}
	used := make([]bool, len(bodies))
	var open []int
	use := func(number int64) {
		if number >= 0 && number < int64(len(bodies)) && !used[number] {
			used[number] = true
			open = append(open, int(number))
		}
	}
	if err := m.exported(func(number int64) { use(number - int64(imports)) }); err != nil {
		return nil, err
	}
	for _, number := range known.functions {
		use(number)
	}
	for len(open) > 0 {
		number := open[len(open)-1]
		open = open[:len(open)-1]
		f, err := readFunction(bodies[number])
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", number, err)
		}
		for _, i := range f.body {
			switch i.op {
			case opCall:
				use(i.a - int64(imports))
			case opI32Const, opI64Const:
				use(i.a>>pcBits - tableBase)
				if number, ok := known.descriptors[i.a]; ok {
					use(number)
				}
			}
		}
	}
	for number := range bodies {
		if !used[number] {
			bodies[number] = traps
			dropped = append(dropped, number)
		}
	}
	return dropped, nil
}

// place is a stretch of memory.
type place struct{ from, to int }

func (p place) has(at int) bool { return at >= p.from && at < p.to }

// exported calls use with the number of each exported function.
func (m module) exported(use func(number int64)) error {
	r := &reader{data: m.section(exportSection)}
	for n := r.unsigned(); n > 0 && r.err == nil; n-- {
		r.take(uint64(r.unsigned())) // the name
		if kind, number := r.byte(), r.unsigned(); kind == 0 {
			use(number)
		}
	}
	if r.err != nil {
		return errors.New("the exports are damaged")
	}
	return nil
}
