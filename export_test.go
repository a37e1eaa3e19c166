package ostiary

// SetFailpoint has fn called between the steps from 9 to 12 of each call's path, with the step just done.
func (o *Options) SetFailpoint(fn func(step string)) { o.failpoint = fn }
