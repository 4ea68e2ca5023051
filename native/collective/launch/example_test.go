package launch_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/native/collective/launch"
)

// A process finds its place in a run by the variables of torchrun. A program calls Environment, which reads its own.
func ExampleFrom() {
	variables := map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
	run, err := launch.From(func(name string) string { return variables[name] })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: rank %d of %d, process %d of this machine, by %s over %s\n", run.Launcher, run.Rank, run.Size, run.LocalRank, run.Engine, run.Address)
	// Output: torchrun: rank 3 of 4, process 1 of this machine, by tcp over node0:29501
}
