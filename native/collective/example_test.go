package collective_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
)

// Three ranks of one process add up their vectors: each gets the sum.
func ExampleLocal() {
	var ranks sync.WaitGroup
	sums := make([]string, 3)
	for _, group := range collective.Local(3, collective.Options{}) {
		ranks.Go(func() {
			defer group.Close()
			x := []int32{1, int32(group.Rank())}
			send, err := binary.Append(nil, binary.LittleEndian, x)
			recv := make([]byte, len(send))
			if err == nil {
				err = group.AllReduce(context.Background(), ir.I32, collective.Sum, send, recv)
			}
			if err == nil {
				_, err = binary.Decode(recv, binary.LittleEndian, x)
			}
			sums[group.Rank()] = fmt.Sprint(group.Rank(), " of ", group.Size(), ": ", x, " ", err)
		})
	}
	ranks.Wait()
	for _, sum := range sums {
		fmt.Println(sum)
	}
	// Output:
	// 0 of 3: [3 3] <nil>
	// 1 of 3: [3 3] <nil>
	// 2 of 3: [3 3] <nil>
}
