// Package plan is the last stage of the compiler. Its input is a module of graphs,
// its output a [Plan] for one target: the buffers to make, the kernels to build, and
// for each entry point the list of dispatches to replay. A plan knows nothing of graphs.
//
// [Compile] runs the stages in order: the passes (package passes), fusion (package
// fusion), schedules (package sched), liveness and memory planning (memory.go),
// horizontal fusion (horizontal.go), and printing with the [Printer] of a dialect
// (steps.go). Read compile.go first.
//
// [Encode] and [Decode] convert a plan to and from a file of its own format
// (see [Encode], for open sizes [EncodeOpen]); [Validate] checks all that executors rely on, including WebGPU's
// usage rules: the rules below. The executors are the TypeScript replayer under
// js/src, and those of the native backends.
//
// # How a plan is run
//
// Opening a program makes one GPU buffer for each of Buffers, writes Constants
// into them, and builds Kernels. All other contents start as zeros. A run of an
// entry writes the slots of its inputs, writes its scalars as one row of a
// uniform buffer, and issues its steps in order in a single submission. A
// persistent slot (a parameter or a state) keeps its contents from run to run
// and is shared by all entries. An input slot keeps its contents too, because
// no step may write it; an output holds its value until the next run of any
// entry. A repeat may have other steps for odd iterations. An indirect dispatch reads
// its grid from memory, where an earlier step has written the grid that the dispatch
// states, or zeros. For a loop of unknown length ([While]) executors read a word of
// memory in the middle of a run; those for WebGPU submit a batch of iterations between
// two reads, to hide the latency of the read.
//
// Opening a program need not wait for all kernels: those with a Draft may be built later,
// and until then the draft runs instead, over the draft grid of each dispatch. It
// writes the same values, summed in the same order.
//
// # How a routine is called
//
// Routines are computed by libraries of the device instead of kernels: see
// [routine.Routine]. A [Call] passes the windows of the routine's arrays, workspace
// included. Executors whose device has no such library refuse the plan, or run the
// reference implementation of the routine, as package replay does.
//
// # How a kernel is bound
//
// Bind group 0 holds the storage arrays in the order of Kernel.Storage: the
// bindings of the [Dispatch]. Bind group 1 exists where the kernel reads
// scalars or counters. Its bindings are uniform, with dynamic offsets: binding
// 0 is the entry's row of scalars (where Kernel.ScalarBytes is not 0), binding
// 1+d the counter of the repeat at depth d, a u32 in a row of its own, for d
// below Kernel.Counters. A row takes a multiple of [RowBytes]. The shader's
// entry point is "main".
//
// # Plans for WebAssembly
//
// The kernels of a plan with Code are functions of that WebAssembly module, which imports one
// memory. An executor places the buffers there, above the bytes of the largest Kernel.SharedBytes.
// It calls a kernel with the addresses of its windows, then that of the row of scalars if
// Kernel.ScalarBytes is not 0, then the counts of Kernel.Counters repeats. Where the grid has
// several workgroups, three more parameters are the first workgroup to run, the end, and the
// address of workgroup memory. Grids are loops inside the kernel; a dispatch whose grid in memory
// is zero is skipped.
//
// # Plans are code
//
// The rules below bound what an executor does by itself, and a
// kernel reaches nothing but the memory of its program; but, as with any code, nothing
// bounds what a kernel computes or whether it terminates. A browser stops a shader that
// runs for too long, and loses the device with it; a function of Code runs until its thread
// is stopped. Only run plans from sources you trust, or run them in a worker, which
// closing the program terminates.
//
// # The status word
//
// Four u32 words in a buffer of their own: word 0 is 0, or the code of the
// first check that failed; the other words are details of that check. Kernels
// that find word 0 set do not write persistent slots. The host reads it together with
// every slot that it reads, and clears it after reporting an error.
//
// # The rules
//
// A file is a valid plan if it obeys these rules, which this
// package and js/src/plan check in the same order; errors name the rule.
// testdata/cases.json has a case for each, which the tests of both run. Rules 1
// to 8 are about the form of the file ([ErrDamaged]; 2 and 8 [ErrVersion]), the
// others about the plan ([ErrInvalid]). "The limits" are those in
// Plan.Requires, which an executor requests from the device first.
//
//  1. The file begins with its magic number and states its own length and the
//     checksum of what follows: a truncated or changed file is detected
//     before its contents are used.
//  2. Its major version is that of the reader.
//  3. A section, record, list or string has the length it states, padding
//     included, within its parent, and its fields take all of it, unless
//     the minor version is later: no length is used before it is checked.
//  4. A u64 or i64 is at most 2⁵³-1 from 0, a u64 not negative: all readers
//     have the same numbers, and sums of two do not overflow. A reader whose
//     integers have 32 bits refuses larger numbers by this rule.
//  5. Strings are UTF-8.
//  6. Buffer kinds, roles, element types, accesses and booleans have known values.
//  7. META, REQS, BUFS, SLOT, CNST, KRNL and ENTR are there, no known section
//     twice but VARI; a variant has no variants.
//  8. A section flagged as required, and the kind of a step, is known: skipping
//     it would change the results.
//  9. A buffer's size is a positive multiple of [RowBytes], so that windows
//     rounded up to rows end in it, and within the limit.
//  10. A slot has a name.
//  11. A slot's size is that of its elements ([SlotBytes]); its dimensions other
//     than 0 multiply to no more than rule 4 allows; quantised types come in
//     whole blocks.
//  12. Bounds are for integer inputs, and in order: the host checks them instead
//     of the kernel.
//  13. A scalar is one f32, i32, u32 or bool at a multiple of [WordBytes]: a
//     word of the row of scalars.
//  14. The window of a slot, constant, copy, binding, grid or the status word lies in
//     a buffer that exists; its size is a multiple of [WordBytes], its offset
//     one of WordBytes, of bindings and the status word one of [RowBytes], as
//     WebGPU asks.
//  15. Inputs lie in buffers for inputs, parameters and states in those for
//     state, outputs in these, temporary or constant ones, constants in those
//     for constants or state, the status word in its own kind: steps or other
//     slots would overwrite them otherwise.
//  16. No two parameters or states have one name: files of weights are by name.
//  17. No two inputs, parameters or states share a byte: all keep their contents.
//  18. A kernel's name is [a-z0-9_]+, fit for labels, and its source is not empty.
//  19. Its workgroup has 1 thread or more along each axis, and each axis and the
//     whole are within the limits.
//  20. Its workgroup memory is within the limit.
//  21. It has at least one storage array, and no more than the limit.
//  22. The uniform block of a kernel and the row of scalars of an entry are
//     multiples of [WordBytes], at most [MaxUniformBytes].
//  23. The rows of all entries, each rounded up to [RowBytes], take at most
//     [MaxRowsBytes]: an executor makes many of each before the first run.
//  24. A kernel reads at most [MaxCounters] counters: WebGPU binds no more with
//     offsets.
//  25. Status codes are not 0, which is no fault, and differ.
//  26. An entry has a name, and no other has the same.
//  27. An entry lists slots that exist: inputs, scalars, as outputs those
//     with that role and persistent ones, and parameters as those it reads and sets.
//  28. The names of an entry's inputs and scalars differ, and those of its
//     outputs; an output has no name of a parameter or state. So the host's
//     names are unambiguous.
//  29. Scalars lie within their entry's row, no two in one place.
//  30. A dispatch runs a kernel that exists.
//  31. It runs 1 workgroup or more along each axis, within the limit.
//  32. It has one binding for each storage array of the kernel.
//  33. A kernel's uniform block is no larger than the entry's row, and it reads
//     no more counters than there are repeats around the dispatch.
//  34. A copy or binding is not empty, and a binding within the limit.
//  35. No step writes to buffers for constants or inputs, which keep their
//     contents.
//  36. In one dispatch a buffer is either only read, or all its windows are
//     writable and share no byte: WebGPU's usage rule, without which results
//     depend on the order of threads. The buffer that an indirect dispatch reads
//     its grid from, within which the grid's window lies (rule 14), is not written.
//  37. A copy is between two buffers, as WebGPU asks.
//  38. A repeat is run 1 to [MaxRepeat] times: there is a row of counters for each round.
//     The steps of its odd rounds obey the rules even where it has none.
//  39. Repeats, loops of unknown length among them, are nested at most [MaxCounters] deep: readers recurse.
//  40. An entry makes at most [MaxDispatches] dispatches, copies and rounds of
//     empty repeats, all repeats written out: its run ends.
//  41. A call runs a routine that exists, with a window for each of its arrays that
//     is at least as large. Only executors whose device has such a library read
//     files with routines: to others the section is required and unknown.
//  42. In one call a window that is written overlaps no other.
//  43. A tensor map of a kernel is of a storage array without atomics, and lies within
//     the window that a dispatch binds there. Only executors for devices that copy by tensor maps
//     read files with tensor maps.
//  44. A draft is of a kernel that exists. The dispatches of a kernel with a draft state a
//     draft grid, for which rule 31 holds, and are not indirect; others state none.
//  45. The kernel of each dispatch of a plan with Code is a function that the module
//     exports, with a parameter for each argument of its call, all i32, and no results.
//     A page checks this when it opens a program, because the module is compiled then.
//  46. In a file with open sizes names of entries differ; the symbols of an entry ascend, each is the
//     size of an axis of an input, and sizes are normal forms of polynomials in them.
//  47. A bucket is of an entry that exists, and no other has its sizes. The inputs of its plans are those
//     of the entry at these sizes, or true sizes, and its outputs those of the entry.
//  48. Each plan of a bucket has the parameters and states of the base plan for its target, at the same
//     places: they share the memory.
//
// Checking takes time linear in the file, except for sorting, and no number is used
// as a size or a count before its limit is checked.
package plan
