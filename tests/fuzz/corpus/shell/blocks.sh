export A=1
f() { local x=$1; echo "$x"; }
if [ "$A" = 1 ] && ! false; then B=two; else B=3; fi
case $B in t*) C=x ;; *) C=y ;; esac
for i in 1 2 3; do D=$i; done
while [[ $A -lt 3 ]]; do A=$((A+1)); done
( E=1 ) | cat
eval "F=$B"
cat > run.sh <<EOF
python pretrain_gpt.py --num-layers $D
EOF
bash run.sh
