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

// zeros returns the body of a function that only sets its results, 8-byte words from an offset on
// the stack, to zero.
func zeros(at int64, words int) []byte {
	var body []instr
	for range words {
		body = append(body, instr{op: opGlobalGet, a: spGlobal}, instr{op: opI64Const}, instr{op: opI64Store, a: 3, b: at})
		at += 8
	}
	return (&function{body: append(body, // pop the return address, and do not unwind
		instr{op: opGlobalGet, a: spGlobal}, instr{op: opI32Const, a: 8}, instr{op: opI32Add}, instr{op: opGlobalSet, a: spGlobal},
		instr{op: opI32Const}, instr{op: opEnd})}).write()
}

// replacement is a new body for functions of Go's runtime.
type replacement struct {
	// unless names functions, separated by spaces, that make the others necessary. The linker drops them from programs
	// that do not use them.
	unless string
	with   []byte
	names  []string // names; a trailing star matches any suffix
}

var replacements = []replacement{
	// Reporting: these have no results, and their output is useless without names and lines. Other
	// functions print the message of a panic.
	{"", returns, []string{
		"runtime.traceback", "runtime.traceback1", "runtime.tracebackothers", "runtime.tracebacksomeothers",
		"runtime.goroutineheader", "runtime.schedtrace", "runtime.dumpgstatus", "runtime.gcDumpObject",
		"runtime.dumpScanStats", "runtime.printScavTrace", "runtime.tracebackHexdump", "runtime.hexdumpWords",
		"runtime.printcreatedby", "runtime.printanycustomtype",
	}},
	// Checks of the linker's tables at each start, and preparations for Go modules loaded later.
	{"", returns, []string{"runtime.moduledataverify1", "runtime.check", "runtime.typelinksinit"}},
	// The runtime may sample memory before it sees that no program reads the memory profile.
	{"runtime.MemProfile", returns, []string{"runtime.mProf_Malloc", "runtime.mProf_NextCycle", "runtime.mProf_Flush", "runtime.mProf_PostSweep"}},
	// Reports of a fault in Go's runtime or in unsafe code before the program ends, as a trap does,
	// and features that only environment variables enable.
	{"", traps, []string{
		"runtime.badPointer", "runtime.(*mspan).reportZombies",
		"runtime.checkFinalizersAndCleanups", "runtime.preMallocgcDebug", "runtime.postMallocgcDebug",
		"runtime.panicwrap",
	}},
	// Options of GODEBUG for processors: WebAssembly has no variants. No program here has hooks of its end.
	{"", returns, []string{"internal/cpu.processOptions", "internal/runtime/exithook.Run"}},
	{"", zeros(16, 1), []string{"runtime.saveAncestors"}},
	// The maps of letters that differ only by case, which regular expressions read.
	{"regexp/syntax.Parse", returns, []string{"unicode.init"}},
	// Features that no program here starts: profiles, leak detection, the bubbles of
	// testing/synctest, arenas, cgo calls.
	{"runtime.SetBlockProfileRate", traps, []string{"runtime.saveblockevent"}},
	{"runtime.goroutineProfileWithLabelsConcurrent", traps, []string{"runtime.doRecordGoroutineProfile"}},
	{"runtime.goroutineLeakGC", traps, []string{"runtime.findGoroutineLeaks"}},
	{"internal/synctest.Run", traps, []string{"runtime.(*synctestBubble).*"}},
	{"arena.runtime_arena_newArena", traps, []string{"runtime.(*mspan).setUserArenaChunkToFault"}},
	{"", traps, []string{"runtime.newextram", "runtime.(*unwinder).cgoCallers", "runtime.expandCgoFrames"}},
	// WebAssembly has one thread and one processor, and no preemption between two instructions.
	{"", traps, []string{"runtime.newm", "runtime.mexit", "runtime.(*p).destroy", "runtime.scanConservative"}},
	{"", traps, []string{"runtime.preemptPark", "runtime.startm", "runtime.handoffp", "runtime.stoplockedm"}},
	// Finalizers, cleanups and weak pointers: without them objects have no special records.
	{finalizers, traps, []string{"runtime.freeSpecial", "runtime.forEachSpecial", "runtime.gcScanFinalizer", "runtime.queuefinalizer", "runtime.(*cleanupQueue).enqueue", "runtime.(*cleanupQueue).wake"}},
	{finalizers, returns, []string{"runtime.(*cleanupQueue).flush"}},
	// Memory is never returned to the host.
	{"", returns, []string{
		"runtime.(*scavengerState).wake", "runtime.(*scavengeIndex).alloc", "runtime.(*scavengeIndex).free", "runtime.(*scavengeIndex).nextGen",
	}},
	{"", zeros(40, 1), []string{"runtime.(*pageAlloc).scavenge"}},
	{"", traps, []string{"runtime.(*scavengerState).run", "runtime.(*scavengerState).sleep", "runtime.(*scavengerState).controllerFailed"}},
	// Finds the method of package reflect to name in an error message, from a stack that has no
	// names here.
	{"", zeros(8, 2), []string{"reflect.valueMethodName", "internal/reflectlite.methodName"}},
	{"", traps, []string{"runtime.(*Frames).Next"}},
	// Tracing, which runs only after a program starts it.
	{"runtime.StartTrace", traps, []string{"runtime.traceLocker.*", "runtime.traceAdvance", "runtime.traceReader"}},
}

// finalizers give objects special records, as the memory profile does.
const finalizers = "runtime.SetFinalizer runtime.addCleanup runtime.(*cleanupQueue).needG runtime.getOrAddWeakHandle runtime.MemProfile"

// tracing reports whether the program can start tracing.
const tracing = "runtime.traceLocker.ok"

// replaceRuntime replaces the bodies of runtime functions, given the names of all functions.
func replaceRuntime(bodies [][]byte, names []string) {
	for _, r := range replacements {
		if slices.ContainsFunc(strings.Fields(r.unless), func(name string) bool { return slices.Contains(names, name) }) {
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

// dropUnused replaces the bodies of unreachable functions: not exported, not called, and without an
// address in memory or in reachable code. Functions keep their numbers, which are part of
// addresses. It returns the numbers of the dropped functions.
func dropUnused(m module, bodies [][]byte, known addresses) (dropped []int, err error) {
	imports, size := binary.Uvarint(m.section(importSection)) // all imports are functions
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

// span is a range of memory.
type span struct{ from, to int }

func (s span) has(at int) bool { return at >= s.from && at < s.to }

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
