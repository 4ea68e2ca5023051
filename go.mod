module github.com/rlx-go/rlx

go 1.26
