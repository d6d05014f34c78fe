# ways: more
# needs: gfortran
cat >a.f90 <<'F'
module m
  type :: node
    integer :: key
    type(node), pointer :: next => null()
  end type
contains
  recursive function total(n) result(s)
    type(node), pointer, intent(in) :: n
    integer :: s
    s = 0
    if (associated(n)) s = n%key + total(n%next)
  end function
end module
program p
  use m
  type(node), pointer :: list, one
  real(8), allocatable :: a(:,:), b(:,:)
  character(len=:), allocatable :: text
  integer :: i
  nullify(list)
  do i = 1, 1000
    allocate(one); one%key = i; one%next => list; list => one
  end do
  allocate(a(60,60), b(60,60)); a = 1.5d0; b = matmul(a, transpose(a))
  text = ''
  do i = 1, 50; text = text // char(64 + mod(i, 26)); end do
  write(*, '(i8, f12.3, a)') total(list), sum(b), text
  do while (associated(list)); one => list%next; deallocate(list); list => one; end do
end program
F
$CHECK gfortran -O2 -g a.f90 -o a && $CHECK ./a
