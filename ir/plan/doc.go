// Package plan is the form in which a compiled module leaves the compiler: the
// buffers to make, the kernels to build, and for each entry point the list of
// dispatches to replay. A [Plan] is for one target; it knows nothing of graphs.
//
// [Encode] and [Decode] convert a plan to and from a file of its own format
// (see the comment at [Encode]); [Validate] checks everything that the
// executors rely on, WebGPU's usage rules included. The executors are the
// TypeScript replayer under js/src and package webgpu/exec.
//
// # How a plan is run
//
// Making a session makes one GPU buffer for each of Buffers, writes Constants
// into them, and builds Kernels. All other contents start as zeros. A run of an
// entry writes the slots of its inputs, writes its scalars as one row of a
// uniform buffer, and issues its steps in order in a single submission; a
// persistent slot (a parameter or a state) keeps its contents from run to run
// and is shared by all entries. An input slot keeps its contents too, because
// no step may write it; an output holds its value until the next run of any
// entry.
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
// # The status word
//
// Four u32 words in a buffer of their own: word 0 is 0, or the code of the
// first check that failed; the words after it are that check's own. Kernels
// that find word 0 set leave persistent slots alone. It is read together with
// every slot that is read, and cleared by the host once it was reported.
package plan
