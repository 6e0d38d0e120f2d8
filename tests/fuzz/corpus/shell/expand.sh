A=${B:-x}; C=${A%%x*}${#A}; unset B
L="$L --x"; L+=" y"
declare -a W=(1 2 3); W+=(4)
echo ${W[1]} ${W[@]:1:2} $'a\n' 010 0x1f $((010 + 0x1f ** 2)) `date` $(pwd)
srun --nodes=2 bash -c "python pretrain_gpt.py --num-layers $A" > log 2>&1 &
