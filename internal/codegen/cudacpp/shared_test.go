package cudacpp_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// TestCopiesOf16BytesAreAligned has a short array before one that copies write, in static and in dynamic shared memory.
func TestCopiesOf16BytesAreAligned(t *testing.T) {
	for _, words := range []int{64, 16 << 10} {
		t.Run(fmt.Sprint(words), func(t *testing.T) {
			k := &loop.Kernel{Name: "copied", Workgroup: [3]int{32, 1, 1}, Groups: [3]int{1, 1, 1}, Arrays: []loop.Array{
				{Name: "from", DType: dtype.U32, Width: 1, Space: loop.Storage, Access: loop.Read},
				{Name: "part", DType: dtype.F32, Width: 1, Space: loop.Shared, Len: 3},
				{Name: "ring", DType: dtype.U32, Width: 1, Space: loop.Shared, Len: words},
			}, Body: []loop.Stmt{
				&loop.CopyAsync{To: 2, ToAt: loop.Int(0), From: 0, FromAt: loop.Int(0), Count: 4}, &loop.CopyCommit{}, &loop.CopyWait{},
			}}
			source, err := cudacpp.Print(k)
			if err != nil {
				t.Fatal(err)
			}
			if at := regexp.MustCompile(`ring = .*dynamic_shared \+ (\d+)`).FindStringSubmatch(source); at != nil {
				if n, _ := strconv.Atoi(at[1]); n%16 != 0 {
					t.Errorf("copies write to byte %d of shared memory", n)
				}
			} else if !strings.Contains(source, "__shared__ __align__(16) unsigned ring[64]") {
				t.Errorf("copies write to words:\n%s", source)
			}
		})
	}
}
