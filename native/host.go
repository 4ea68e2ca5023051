package native

import (
	"math"
	"os"

	"github.com/rlx-go/rlx/internal/cgroup"
)

// HostMemory returns the memory available to this process: the machine's memory or, if
// lower, the limit of its control group or of the process.
func HostMemory() Budget {
	budget := Budget{Bytes: 1 << 40, Source: "the bound where the machine's memory is not known"}
	if math.MaxInt == math.MaxInt32 {
		budget = Budget{Bytes: math.MaxInt32, Source: "the address space"}
	}
	if bytes := machineMemory(); bytes > 0 {
		budget = lower(budget, Budget{bytes, "the machine's memory"})
	}
	if bytes := processLimit(); bytes > 0 {
		budget = lower(budget, Budget{bytes, "the process's limit of address space"})
	}
	return lower(budget, Budget{cgroup.MemoryLimit(os.DirFS("/")), "the control group's limit"})
}

// lower returns the lower of two budgets; b of 0 bytes is no limit.
func lower(a, b Budget) Budget {
	if b.Bytes > 0 && b.Bytes < a.Bytes {
		return b
	}
	return a
}
