package cudacpp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
)

// roles are named barriers, mbarriers and TMA copies. See the PTX ISA,
// "Parallel Synchronization and Communication Instructions" and "cp.async.bulk.tensor".
var roles = clike.Roles{
	Thread: "int(threadIdx.x)",
	Barrier: func(role, threads int) string {
		return fmt.Sprintf(`asm volatile("bar.sync %d, %d;" ::: "memory");`, role, threads)
	},
	Copy: copyTMA,
	Arrive: func(w *clike.Writer, barrier string) string {
		w.Define("arrive_at", arriveAt)
		return "arrive_at(" + barrier + ");"
	},
	Await: func(w *clike.Writer, barrier, phase string) string {
		w.Define("await_phase", awaitPhase)
		return "await_phase(" + barrier + ", " + phase + ");"
	},
}

// tensorMapName returns the name of the parameter with a tensor map.
func tensorMapName(number int) string { return fmt.Sprintf("box%d", number) }

// copyTMA has one thread set the expected bytes of the mbarrier and issue the TMA copy.
func copyTMA(w *clike.Writer, c *clike.TMACopy) string {
	name, mode := fmt.Sprintf("copy_box_%d", len(c.From)), ""
	if len(c.Offset) > 0 {
		name, mode = fmt.Sprintf("copy_pixels_%d", len(c.From)), ".im2col"
	}
	var params, inputs strings.Builder
	operands := func(prefix, declared, constraint string, first, n int) string {
		list := make([]string, n)
		for i := range list {
			fmt.Fprintf(&params, ", %s %s%d", declared, prefix, i)
			fmt.Fprintf(&inputs, `, "%s"(%s%d)`, constraint, prefix, i)
			list[i] = fmt.Sprintf("%%%d", first+i)
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	from, offset := operands("x", "int", "r", 4, len(c.From)), ""
	if len(c.Offset) > 0 {
		offset = ", " + operands("offset", "unsigned short", "h", 4+len(c.From), len(c.Offset))
	}
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ void %s(void *to, const TensorMap *box%s, unsigned long long *barrier, unsigned bytes) {
  if (threadIdx.x %% 32u == 0u)
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%%2], %%3;\n"
                 "cp.async.bulk.tensor.%dd.shared::cluster.global%s.mbarrier::complete_tx::bytes [%%0], [%%1, %s], [%%2]%s;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(box), "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(bytes)%s : "memory");
}
`, name, params.String(), len(c.From), mode, from, offset, inputs.String()))
	at := strings.Join(append(slices.Clone(c.From), c.Offset...), ", ")
	return fmt.Sprintf("%s(%s, &%s, %s, %s, %d);", name, c.To, tensorMapName(c.Map), at, c.Barrier, c.Bytes)
}

// arriveAt makes the writes of a warp visible and counts the warp's arrival.
const arriveAt = `static __device__ __forceinline__ void arrive_at(unsigned long long *barrier) {
  __syncwarp();
  if (threadIdx.x % 32u == 0u)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(barrier)) : "memory");
}
`

// awaitPhase waits for the end of a phase, which the hardware identifies by its parity.
const awaitPhase = `static __device__ __forceinline__ void await_phase(unsigned long long *barrier, int phase) {
  asm volatile("{\n.reg .pred over;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}"
               :: "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(phase & 1) : "memory");
}
`

// tensorMap declares CUtensorMap, which the driver fills in.
const tensorMap = `
struct __align__(64) TensorMap {
  unsigned char bytes[128];
};`

// beginBarriers has one thread initialise the mbarriers.
func (p *printer) beginBarriers() {
	if len(p.k.Mbarriers) == 0 {
		return
	}
	p.line("  if (threadIdx.x == 0u) {")
	for i, m := range p.k.Mbarriers {
		p.line("    for (int i = 0; i < %d; i++) begin_barrier(&%s[i], %d);", m.Len, p.src.Mbarriers[i], m.Warps)
	}
	p.line("    %s\n  }\n  __syncthreads();", async.Fence)
}

// beginBarrier initialises an mbarrier for its first phase.
const beginBarrier = `
static __device__ __forceinline__ void begin_barrier(unsigned long long *barrier, int warps) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(warps) : "memory");
}`
