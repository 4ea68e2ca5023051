package mpi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/mpi"
)

// A process that mpirun started joins the others: mpirun -n 4 program.
func ExampleJoin() {
	group, err := mpi.Join(context.Background(), collective.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	fmt.Println(group.Rank(), "of", group.Size())
}
