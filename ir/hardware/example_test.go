package hardware_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/hardware"
)

// A copy of 1 GB takes at least the time of the memory.
func ExampleWork_Time() {
	p := hardware.H200()
	w := hardware.Work{Bytes: 1e9, Sectors: 1e9, Threads: 1 << 24, BytesInFlight: 16}
	fmt.Println(w.Time(p) >= 1e9/p.Bandwidth())
	// Output: true
}
