package tcp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"net"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
)

// Two processes of a run add up their numbers. A program gets its place by launch.Environment; here both are goroutines.
func ExampleJoin() {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ctx, sums := context.Background(), [2]uint32{}
	var ranks sync.WaitGroup
	for rank := range sums {
		ranks.Go(func() {
			group, err := tcp.Join(ctx, launch.Run{Rank: rank, Size: 2, LocalRank: rank, LocalSize: 2, Address: address, Engine: launch.TCP}, collective.Options{})
			if err != nil {
				log.Fatal(err)
			}
			defer group.Close()
			send := binary.LittleEndian.AppendUint32(nil, uint32(10+rank))
			recv := make([]byte, len(send))
			if err := group.AllReduce(ctx, ir.U32, collective.Sum, send, recv); err != nil {
				log.Fatal(err)
			}
			sums[rank] = binary.LittleEndian.Uint32(recv)
		})
	}
	ranks.Wait()
	fmt.Println(sums)
	// Output: [21 21]
}
