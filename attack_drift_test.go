package ostiary_test

func rugPull(page int) *hostile { return &hostile{page: page, tools: always(says("a", "b", ""))} }
